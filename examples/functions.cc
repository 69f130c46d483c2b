// functions.cc: user-defined functions for skep-server, compiled to a shared object:
//
//   skep-server --function-library path/to/functions.so
//   > VUPDATE weights relu f32 0
//   > VREDUCE weights squares f32
//
// The object is linked with nothing of Skep: it runs in the server, which has every symbol.
#include <skep/function.h>

namespace {

float Relu(float element, float threshold) { return element < threshold ? threshold : element; }

double Squares(double state, float element) { return state + double{element} * element; }

// Undefined behaviour would stop the server: a division by 0, and of the smallest number by -1.
bool IsMultiple(int64_t element, int64_t of) { return of == -1 || (of != 0 && element % of == 0); }

}  // namespace

extern "C" bool SkepRegisterFunctions() {
  return skep::RegisterUpdate<float>("relu", Relu).has_value() &&
         skep::RegisterReduce<float>("squares", Squares).has_value() &&
         skep::RegisterFilter<int64_t>("multiple", IsMultiple).has_value();
}
