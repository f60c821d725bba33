#pragma once

// The files of device/ as text, embedded at build time. Emitted code holds them in this order;
// complex only where a complex type occurs.
namespace stride::codegen {

extern const char kBaseHeader[];
extern const char kArithmeticHeader[];
extern const char kFloatsHeader[];
extern const char kComplexHeader[];
extern const char kGenericHeader[];

}  // namespace stride::codegen
