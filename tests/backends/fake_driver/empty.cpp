// A library that has no function of a driver; also what a target of generated files only begins with.
extern "C" int not_a_driver;
int not_a_driver = 1;
