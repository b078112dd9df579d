// The extension module gimbal._gimbal.
#include "python/object.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__gimbal();

using namespace gimbal::python;

PyObject* PyInit__gimbal() {
  // A sub-interpreter calls this again (a size of 0): types and open devices belong to the first one.
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "gimbal._gimbal",
                                   "gimbal's functions, by position: use the package gimbal.",
                                   0,
                                   kFunctions,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  static bool made = false;
  if (made || PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "gimbal works in one interpreter of a process, the first; use threads or processes");
    return nullptr;
  }
  Ref module(PyModule_Create(&definition));
  if (!module || !add_exceptions(module.get()) || !add_types(module.get())) return nullptr;
  for (PyMethodDef* table : {kExchangeFunctions, kModelFunctions, kTextFunctions, kRecordedFunctions})
    if (PyModule_AddFunctions(module.get(), table) < 0) return nullptr;
  made = true;
  return module.release();
}
