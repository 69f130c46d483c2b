// functions.cc: functions of one's own for skep-server. Compiled to a shared object:
//
//   skep-server --function-library path/to/functions.so
//   > VUPDATE weights relu f32 0
//   > VREDUCE weights squares f32
//
// They are linked with nothing of Skep: they run in the server, which has it all.
#include <skep/function.h>

namespace {

float Relu(float element, float threshold) { return element < threshold ? threshold : element; }

double Squares(double state, float element) { return state + double{element} * element; }

// What is undefined in C++ stops the server: here 0, and the smallest number by -1.
bool IsMultiple(int64_t element, int64_t of) { return of == -1 || (of != 0 && element % of == 0); }

}  // namespace

extern "C" bool SkepRegisterFunctions() {
  return skep::RegisterUpdate<float>("relu", Relu).has_value() &&
         skep::RegisterReduce<float>("squares", Squares).has_value() &&
         skep::RegisterFilter<int64_t>("multiple", IsMultiple).has_value();
}
