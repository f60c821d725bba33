#include "tests/support/fake_engine.h"

namespace stride::testing {

absl::StatusOr<v1::Function> NoFunctions::Create(const TenantId&, const v1::CreateFunctionRequest&,
                                                 SteadyTime) {
  return absl::UnimplementedError("the fake has no functions");
}

absl::StatusOr<v1::Function> NoFunctions::Get(const TenantId&, const std::string&) {
  return absl::UnimplementedError("the fake has no functions");
}

absl::StatusOr<v1::ListFunctionsResponse> NoFunctions::List(const TenantId&,
                                                            const v1::ListFunctionsRequest&) {
  return absl::UnimplementedError("the fake has no functions");
}

absl::Status NoFunctions::Delete(const TenantId&, const std::string&) {
  return absl::UnimplementedError("the fake has no functions");
}

absl::StatusOr<v1::CreateProgramResponse> NoPrograms::Create(const TenantId&,
                                                             const v1::CreateProgramRequest&) {
  return absl::UnimplementedError("the fake has no programs");
}

absl::StatusOr<v1::Program> NoPrograms::Get(const TenantId&, const std::string&) {
  return absl::UnimplementedError("the fake has no programs");
}

absl::StatusOr<v1::ListProgramsResponse> NoPrograms::List(const TenantId&,
                                                          const v1::ListProgramsRequest&) {
  return absl::UnimplementedError("the fake has no programs");
}

absl::Status NoPrograms::Delete(const TenantId&, const std::string&) {
  return absl::UnimplementedError("the fake has no programs");
}

}  // namespace stride::testing
