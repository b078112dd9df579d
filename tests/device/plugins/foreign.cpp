// A library that is no plugin: it exports nothing that gimbal asks for.
extern "C" __attribute__((visibility("default"))) int foreign_library(void) { return 7; }
