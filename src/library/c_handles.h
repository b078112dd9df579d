// The handles of the C interface (include/gimbal/gimbal.h), and the guard that every function of it runs in.
#pragma once
#include "library/internal.h"

// The library's own names come first: library/internal.h.
#include "library/json_forms.h"

#include <gimbal/gimbal.h>

#include <cstdlib>
#include <cstring>
#include <new>

struct gimbal_error {
  gimbal::v1::Error value;
};
struct gimbal_cancel {
  std::atomic<bool> wanted = false;
};
struct gimbal_engine {
  gimbal::v1::Engine engine;
};
struct gimbal_model {
  gimbal::v1::Model model;
};
struct gimbal_sequence {
  gimbal::v1::Sequence sequence;
};
struct gimbal_messages {
  std::vector<gimbal::v1::Message> all;
};
struct gimbal_text {
  std::string text, json;
  std::vector<gimbal::v1::Token> tokens;
  int32_t finish = GIMBAL_FINISH_LENGTH;
};

namespace gimbal::v1::c {

static_assert(GIMBAL_ERROR_DEVICE_LOST == int(Code::DeviceLost) + 1);
static_assert(GIMBAL_FINISH_CANCELLED == int(Finish::Cancelled));
static_assert(GIMBAL_EVENT_MEASURING == int(Event::Measuring));

// Writes the error, if it is wanted, and returns its code.
gimbal_result fail(gimbal_error** to, Error e) noexcept;

// Runs `work`, which returns a Status. No exception passes: memory can run out anywhere, and callbacks of C++
// programs may throw.
template <class Work>
gimbal_result guarded(gimbal_error** error, const Work& work) noexcept {
  if (error) *error = nullptr;
  try {
    Status done = work();
    return done ? GIMBAL_DONE : fail(error, done.error());
  } catch (const std::bad_alloc&) {
    return fail(error, {Code::OutOfMemory, "the memory of this process is used up", "", "", "", "", "", {}});
  } catch (const std::exception& e) {
    return fail(error, {Code::Failed, e.what(), "", "", "", "", "", {}});
  } catch (...) {
    return fail(error,
                {Code::Failed, "a callback has thrown", "callbacks must not throw", "", "", "", "", {}});
  }
}

// A copy that gimbal_free() releases. Throws bad_alloc.
template <class T>
T* copy(const T* from, size_t count, size_t zeros = 0) {
  auto* to = static_cast<T*>(std::malloc(std::max<size_t>(1, (count + zeros) * sizeof(T))));
  if (!to) throw std::bad_alloc();
  if (count) std::memcpy(to, from, count * sizeof(T));
  if (zeros) std::memset(static_cast<void*>(to + count), 0, zeros * sizeof(T));
  return to;
}
inline char* copy(const std::string& text) { return copy(text.data(), text.size(), 1); }

// Errors: Usage naming the argument that is NULL.
Status given(std::initializer_list<std::pair<const char*, const void*>> arguments);

inline bool cancelled(const gimbal_cancel* c) { return c && c->wanted.load(std::memory_order_relaxed); }

// Results as JSON, keys as the members' names (c_results.cpp).
std::string written(const Json&);
Json json_of(const Message&);
Json json_of(const Generated&);
Json json_of(const ToolCall&);
Json json_of(const std::vector<Backend>&);
Json json_of(const std::vector<LocalModel>&);
Json json_of(const ModelPlan&);
Json json_of(const Explanation&);
Json json_of(const Model&);

}  // namespace gimbal::v1::c
