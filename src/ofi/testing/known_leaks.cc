// Each test program that has libfabric linked tells LeakSanitizer here what libfabric leaks.
//
// The provider tcp of libfabric 1.17 loses what it knew of a connection (a copy of an fi_info, 676
// bytes, or a part of it) that was asked for and whose endpoint is closed before it is answered.
// Its frames have no names without the debug package, so all of the library is meant.

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __lsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libfabric\n";
}
#endif
