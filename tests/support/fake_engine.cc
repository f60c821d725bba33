#include "tests/support/fake_engine.h"

namespace stride::testing {

absl::StatusOr<v1::CreateRegionResponse> NoRegions::Create(const TenantId&,
                                                           const v1::CreateRegionRequest&) {
  return absl::UnimplementedError("the fake has no regions");
}

absl::Status NoRegions::Delete(const TenantId&, const std::string&) {
  return absl::UnimplementedError("the fake has no regions");
}

absl::StatusOr<v1::MapArrayResponse> NoRegions::Map(const TenantId&, const v1::MapArrayRequest&,
                                                    SteadyTime) {
  return absl::UnimplementedError("the fake has no regions");
}

absl::StatusOr<scheduler::RedeemedRegion> NoRegions::Redeem(std::string_view) {
  return absl::UnimplementedError("the fake has no regions");
}

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
