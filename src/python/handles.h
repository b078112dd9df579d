// Objects of the public library as Python's capsules: the package wraps them in classes.
#pragma once
#include <gimbal/engine.h>

#include <memory>

#include "library/json_forms.h"
#include "python/arguments.h"

namespace gimbal::python {

// The name of a type's capsules.
template <class T>
inline constexpr const char* kCapsule = nullptr;
template <>
inline constexpr const char* kCapsule<Model> = "gimbal.Model";
template <>
inline constexpr const char* kCapsule<Sequence> = "gimbal.Sequence";
template <>
inline constexpr const char* kCapsule<std::shared_ptr<Batch>> = "gimbal.Batch";

// The end of a model or batch waits for its threads, which may want Python's lock.
template <class T>
void end_capsule(PyObject* capsule) {
  auto* value = static_cast<T*>(PyCapsule_GetPointer(capsule, kCapsule<T>));
  unlocked(true, [&] {
    delete value;
    return 0;
  });
}
template <class T>
PyObject* capsule_of(T value) {
  auto held = std::make_unique<T>(std::move(value));
  PyObject* capsule = PyCapsule_New(held.get(), kCapsule<T>, end_capsule<T>);
  if (capsule) held.release();
  return capsule;
}
template <class T>
T& held(const Arguments& a, size_t i) {
  auto* value = static_cast<T*>(PyCapsule_GetPointer(a.object(i), kCapsule<T>));
  if (!value) throw Raised();
  return *value;
}

// The value of a result, or its error as an exception.
template <class T>
T& expect(Result<T>& result) {
  if (!result) raise(result.error());
  return *result;
}

// Options from their JSON text.
template <class T>
T options_of(const Arguments& a, size_t i) {
  T options;
  if (auto ok = c::read(a.text(i).c_str(), options); !ok) raise(ok.error());
  return options;
}

std::vector<Token> tokens_of(const Arguments& a, size_t i);
std::vector<Message> messages_of(const Arguments& a, size_t i);  // a list of JSON texts
PyObject* list_of(const std::vector<Token>&);

}  // namespace gimbal::python
