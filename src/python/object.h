// Python's objects owned by C++, and errors as exceptions. Over the limited API of 3.11: one module serves
// every later Python.
#pragma once
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <gimbal/tensor.h>

#include <atomic>
#include <string>
#include <string_view>
#include <utility>

namespace gimbal::python {

// A reference that is let go at the end. Null: an exception is set.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref&& o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Thrown where an exception of Python is set; entry points return null then.
struct Raised {};

// Sets the exception that belongs to the error's reason or code, with attributes reason and remedy.
[[noreturn]] void raise(const Error&);
[[noreturn]] void raise_type(const char* message);
// Bytes that are no UTF-8 become U+FFFD: messages may hold names of files.
PyObject* text_object(std::string_view);
// The exceptions, made once with the module.
bool add_exceptions(PyObject* module);

// The objects that hold a tensor and a queue.
PyObject* new_tensor(Tensor);        // raises the error of a failed one
const Tensor* as_tensor(PyObject*);  // null if it is none; sets nothing
PyObject* new_queue(Queue);
const Queue* as_queue(PyObject*);
bool add_types(PyObject* module);

// The tables of the module's functions: of tensors, of arrays of others, of models, of texts that they write.
extern PyMethodDef kFunctions[], kExchangeFunctions[], kModelFunctions[], kTextFunctions[],
    kRecordedFunctions[];

// Calls f; an exception becomes one of Python.
template <class F>
PyObject* guarded(F f) {
  try {
    return f();
  } catch (const Raised&) { return nullptr; } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// Holds Python's lock, for threads that computed without it.
class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Once an operation calls Python from the threads of a device, no thread may wait for the device while it
// holds Python's lock.
inline std::atomic<bool> device_calls_python = false;

// Lets other threads run meanwhile: for work that is worth it.
template <class F>
auto unlocked(bool worth_it, F f) {
  if (!worth_it && !device_calls_python.load(std::memory_order_relaxed)) return f();
  PyThreadState* state = PyEval_SaveThread();
  auto result = f();
  PyEval_RestoreThread(state);
  return result;
}

}  // namespace gimbal::python
