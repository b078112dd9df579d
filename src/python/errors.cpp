// Exceptions: gimbal.Error and its kinds, each also of Python's own kind.
#include "python/object.h"

namespace gimbal::python {
namespace {

PyObject *error_type, *shape_error, *dtype_error, *index_error, *device_error, *out_of_memory, *usage_error,
    *not_found, *file_error;

PyObject* kind_of(const Error& e) {
  if (e.reason == reason::kShape) return shape_error;
  if (e.reason == reason::kDType) return dtype_error;
  if (e.reason == reason::kIndex) return index_error;
  if (e.code == Code::OutOfMemory) return out_of_memory;
  if (e.code == Code::NoBackend || e.code == Code::DeviceLost) return device_error;
  if (e.code == Code::Usage) return usage_error;
  if (e.code == Code::NotFound) return not_found;
  if (e.code == Code::Malformed || e.code == Code::Unsupported) return file_error;
  return error_type;
}

PyObject* made(PyObject* module, const char* name, const char* doc, PyObject* base, PyObject* also) {
  Ref bases(also ? PyTuple_Pack(2, base, also) : PyTuple_Pack(1, base));
  if (!bases) return nullptr;
  PyObject* type =
      PyErr_NewExceptionWithDoc((std::string("gimbal.") + name).c_str(), doc, bases.get(), nullptr);
  if (type && PyModule_AddObjectRef(module, name, type) < 0) return nullptr;
  return type;
}

}  // namespace

PyObject* text_object(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
}

bool add_exceptions(PyObject* m) {
  error_type = made(m, "Error", "A failure; .reason is a word for programs, .remedy what to do.",
                    PyExc_Exception, nullptr);
  for (const char* name : {"reason", "remedy", "field"}) {  // of those that Python code raises
    Ref empty(text_object(""));
    if (!error_type || !empty || PyObject_SetAttrString(error_type, name, empty.get()) < 0) return false;
  }
  return error_type &&
         (shape_error = made(m, "ShapeError", "Dims that do not fit.", error_type, PyExc_ValueError)) &&
         (dtype_error = made(m, "DTypeError", "An operation that is not defined for these dtypes.",
                             error_type, PyExc_TypeError)) &&
         (index_error =
              made(m, "IndexError", "An index, dim or id out of range.", error_type, PyExc_IndexError)) &&
         (device_error = made(m, "DeviceError", "No device satisfies the request, or it was lost.",
                              error_type, PyExc_RuntimeError)) &&
         (out_of_memory =
              made(m, "OutOfMemory", "A tensor or model does not fit.", error_type, PyExc_MemoryError)) &&
         (usage_error = made(m, "UsageError", "An argument or setting is wrong; .field names it.", error_type,
                             PyExc_ValueError)) &&
         (not_found = made(m, "NotFound", "No such file, model or device.", error_type, PyExc_LookupError)) &&
         (file_error = made(m, "FileError",
                            "A file breaks its format, or has something that this version does not support.",
                            error_type, PyExc_ValueError));
}

void raise(const Error& e) {
  PyObject* type = kind_of(e);
  // In one text, as the command line prints them.
  Ref message(text_object(e.remedy.empty() ? e.message : e.message + "; " + e.remedy));
  if (!message) throw Raised();
  Ref value(PyObject_CallFunctionObjArgs(type, message.get(), nullptr));
  if (!value) throw Raised();
  for (const auto& [name, text] :
       {std::pair("reason", &e.reason), {"remedy", &e.remedy}, {"field", &e.field}}) {
    Ref words(text_object(*text));
    if (!words || PyObject_SetAttrString(value.get(), name, words.get()) < 0) throw Raised();
  }
  PyErr_SetObject(type, value.get());
  throw Raised();
}
void raise_type(const char* message) {
  PyErr_SetString(PyExc_TypeError, message);
  throw Raised();
}

}  // namespace gimbal::python
