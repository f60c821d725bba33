// cuSOLVER calls with a library of fake functions. At all sizes, each call gets the work memory
// that its query requested, and is not made without it.
#include "server/worker/cuda/lower/solver.h"

#include <cusolverDn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace stride::cuda {
namespace {

// The queries and the workspaces that the fake library received.
struct FakeLibrary {
  size_t device_bytes = 0, host_bytes = 0;  // its next result
  bool answers = true;                      // else it succeeds and writes no size
  cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
  std::vector<std::string> called;
  size_t given_device_bytes = 0, given_host_bytes = 0;
  const void* given_device = nullptr;
  const void* given_host = nullptr;
};
FakeLibrary g_library;

template <auto kName, typename Function>
struct Fake;

// `kName` is any value that is unique per function.
template <auto kName, typename... Arguments>
struct Fake<kName, cusolverStatus_t (*)(Arguments...)> {
  static constexpr size_t kCount = sizeof...(Arguments);
  using Tuple = std::tuple<Arguments...>;
  template <size_t kFromEnd>
  using TypeFromEnd = std::tuple_element_t<kCount - kFromEnd, Tuple>;

  static cusolverStatus_t Size(Arguments... arguments) {
    Tuple all(arguments...);
    if (!g_library.answers) return g_library.status;
    if constexpr (std::is_same_v<TypeFromEnd<1>, int*>) {
      *std::get<kCount - 1>(all) = static_cast<int>(g_library.device_bytes);  // in elements
    } else {
      *std::get<kCount - 2>(all) = g_library.device_bytes;
      *std::get<kCount - 1>(all) = g_library.host_bytes;
    }
    return g_library.status;
  }

  static cusolverStatus_t Call(Arguments... arguments) {
    Tuple all(arguments...);
    g_library.called.push_back(kName());
    if constexpr (std::is_same_v<TypeFromEnd<2>, size_t>) {
      g_library.given_device = std::get<kCount - 5>(all);
      g_library.given_device_bytes = std::get<kCount - 4>(all);
      g_library.given_host = std::get<kCount - 3>(all);
      g_library.given_host_bytes = std::get<kCount - 2>(all);
    } else {
      g_library.given_device = std::get<kCount - 3>(all);
      g_library.given_device_bytes = std::get<kCount - 2>(all);  // in elements
      g_library.given_host = nullptr;
      g_library.given_host_bytes = 0;
    }
    return g_library.status;
  }
};

cusolverStatus_t Create(cusolverDnHandle_t* handle) {
  *handle = reinterpret_cast<cusolverDnHandle_t>(1);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t CreateParameters(cusolverDnParams_t* parameters) {
  *parameters = reinterpret_cast<cusolverDnParams_t>(1);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t Destroy(cusolverDnHandle_t) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t DestroyParameters(cusolverDnParams_t) { return CUSOLVER_STATUS_SUCCESS; }
cusolverStatus_t SetStream(cusolverDnHandle_t, cudaStream_t) { return CUSOLVER_STATUS_SUCCESS; }

std::map<std::string, void*> FakeFunctions() {
  std::map<std::string, void*> functions;
#define FAKE(name)                                                                                \
  functions[#name "_bufferSize"] =                                                                \
      reinterpret_cast<void*>(&Fake<[] { return #name; }, decltype(&::name##_bufferSize)>::Size); \
  functions[#name] = reinterpret_cast<void*>(&Fake<[] { return #name; }, decltype(&::name)>::Call);
  FAKE(cusolverDnXpotrf)
  FAKE(cusolverDnXgetrf)
  FAKE(cusolverDnXgeqrf)
  FAKE(cusolverDnXgesvd)
  FAKE(cusolverDnXsyevd)
  FAKE(cusolverDnSorgqr)
  FAKE(cusolverDnDorgqr)
  FAKE(cusolverDnCungqr)
  FAKE(cusolverDnZungqr)
#if CUSOLVER_VERSION >= 11702
  FAKE(cusolverDnXgeev)
#endif
#undef FAKE
  functions["cusolverDnXgetrs"] = reinterpret_cast<void*>(
      &Fake<[] { return "cusolverDnXgetrs"; }, decltype(&::cusolverDnXgetrs)>::Call);
  functions["cusolverDnCreate"] = reinterpret_cast<void*>(&Create);
  functions["cusolverDnCreateParams"] = reinterpret_cast<void*>(&CreateParameters);
  functions["cusolverDnDestroy"] = reinterpret_cast<void*>(&Destroy);
  functions["cusolverDnDestroyParams"] = reinterpret_cast<void*>(&DestroyParameters);
  functions["cusolverDnSetStream"] = reinterpret_cast<void*>(&SetStream);
  return functions;
}

constexpr CUdeviceptr kArray = 4096, kWork = 8192, kInfo = 256;
constexpr int64_t kOrder = 512;

// Each routine: its query, its call, and the unit of the query's result in bytes.
struct Routine {
  std::string name;
  std::function<absl::StatusOr<SolverWork>(Solver&)> ask;
  std::function<absl::Status(Solver&, const Solver::Call&)> call;
  size_t unit = 1;
};

std::vector<Routine> AllRoutines() {
  std::vector<Routine> all;
  const DType d = DType::kFloat64;
  all.push_back({"cusolverDnXpotrf",
                 [=](Solver& s) { return s.CholeskyWork(d, true, kOrder, kArray); },
                 [=](Solver& s, const Solver::Call& call) {
                   return s.Cholesky(d, true, kOrder, kArray, call);
                 }});
  all.push_back({"cusolverDnXgetrf", [=](Solver& s) { return s.LuWork(d, kOrder, 3, kArray); },
                 [=](Solver& s, const Solver::Call& call) {
                   return s.Lu(d, kOrder, 3, kArray, kArray, call);
                 }});
  all.push_back({"cusolverDnXgeqrf", [=](Solver& s) { return s.QrWork(d, 7, kOrder, kArray); },
                 [=](Solver& s, const Solver::Call& call) {
                   return s.Qr(d, 7, kOrder, kArray, kArray, call);
                 }});
  for (char vectors : {'A', 'S', 'N'}) {
    all.push_back({"cusolverDnXgesvd",
                   [=](Solver& s) { return s.SvdWork(d, vectors, kOrder, 40, kArray); },
                   [=](Solver& s, const Solver::Call& call) {
                     return s.Svd(d, vectors, kOrder, 40, kArray, kArray, kArray, kArray, call);
                   }});
  }
  for (bool vectors : {false, true}) {
    all.push_back({"cusolverDnXsyevd",
                   [=](Solver& s) { return s.EighWork(d, vectors, false, kOrder, kArray); },
                   [=](Solver& s, const Solver::Call& call) {
                     return s.Eigh(d, vectors, false, kOrder, kArray, kArray, call);
                   }});
#if CUSOLVER_VERSION >= 11702
    all.push_back({"cusolverDnXgeev",
                   [=](Solver& s) { return s.EigWork(d, vectors, kOrder, kArray); },
                   [=](Solver& s, const Solver::Call& call) {
                     return s.Eig(d, vectors, kOrder, kArray, kArray, vectors ? kArray : 0, call);
                   }});
#endif
  }
  const std::pair<DType, const char*> makers[] = {{DType::kFloat32, "cusolverDnSorgqr"},
                                                  {DType::kFloat64, "cusolverDnDorgqr"},
                                                  {DType::kComplex64, "cusolverDnCungqr"},
                                                  {DType::kComplex128, "cusolverDnZungqr"}};
  for (const auto& [dtype, name] : makers) {
    all.push_back({name,
                   [dtype = dtype](Solver& s) { return s.QWork(dtype, kOrder, 40, 30, kArray); },
                   [dtype = dtype](Solver& s, const Solver::Call& call) {
                     return s.Q(dtype, kOrder, 40, 30, kArray, kArray, call);
                   },
                   static_cast<size_t>(ItemSize(dtype))});
  }
  return all;
}

class SolverTest : public testing::Test {
 protected:
  void SetUp() override {
    g_library = FakeLibrary();
    driver_.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
    Open();
  }
  void Open() {
    auto solver = Solver::Create(driver_, nullptr, [&](const char* name) -> void* {
      auto found = functions_.find(name);
      return found == functions_.end() ? nullptr : found->second;
    });
    ASSERT_TRUE(solver.ok()) << solver.status();
    solver_ = *std::move(solver);
  }
  static Solver::Call CallOf(const SolverWork& need, uint64_t work_bytes) {
    return {need, kWork, work_bytes, kInfo};
  }

  Driver driver_;
  std::map<std::string, void*> functions_ = FakeFunctions();
  std::unique_ptr<Solver> solver_;
};

TEST_F(SolverTest, EveryCallGetsTheQueriedWorkMemory) {
  size_t size = 4981132;  // measured for Xsyevd, 512
  for (const Routine& routine : AllRoutines()) {
    size += 16;
    g_library.device_bytes = size / routine.unit;
    g_library.host_bytes = size + 3;
    const auto need = routine.ask(*solver_);
    ASSERT_TRUE(need.ok()) << routine.name << need.status();
    EXPECT_EQ(need->device_bytes(), size / routine.unit * routine.unit) << routine.name;
    // The results of later queries belong to another call.
    g_library.device_bytes = g_library.host_bytes = 1;
    ASSERT_TRUE(routine.call(*solver_, CallOf(*need, need->device_bytes() + 512)).ok());
    ASSERT_FALSE(g_library.called.empty());
    EXPECT_EQ(g_library.called.back(), routine.name);
    EXPECT_EQ(g_library.given_device, reinterpret_cast<void*>(kWork)) << routine.name;
    EXPECT_EQ(g_library.given_device_bytes * routine.unit, need->device_bytes()) << routine.name;
    if (routine.unit > 1) continue;  // needs device memory only
    EXPECT_EQ(g_library.given_host_bytes, size + 3) << routine.name;
    EXPECT_NE(g_library.given_host, nullptr) << routine.name;
  }
}

TEST_F(SolverTest, CallWithoutWorkMemoryIsNotMade) {
  const std::vector<Routine> all = AllRoutines();
  g_library.device_bytes = 100000;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto need = all[i].ask(*solver_), other = all[(i + 1) % all.size()].ask(*solver_);
    ASSERT_TRUE(need.ok() && other.ok());
    const uint64_t bytes = need->device_bytes();
    Solver::Call nowhere = CallOf(*need, bytes);
    nowhere.work = 0;
    for (const Solver::Call& call :
         {CallOf(*need, bytes - 1), CallOf(*need, 0), nowhere, CallOf(SolverWork(), bytes),
          CallOf(*other, other->device_bytes())}) {
      const absl::Status status = all[i].call(*solver_, call);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << all[i].name << status;
    }
  }
  EXPECT_TRUE(g_library.called.empty()) << g_library.called.back();
}

TEST_F(SolverTest, UnwrittenSizeIsInternal) {
  g_library.answers = false;
  for (const Routine& routine : AllRoutines()) {
    if (routine.unit > 1) continue;  // -1 elements: see the next test
    const auto need = routine.ask(*solver_);
    EXPECT_EQ(need.status().code(), absl::StatusCode::kInternal) << routine.name;
    g_library.status = CUSOLVER_STATUS_NOT_SUPPORTED;
    EXPECT_EQ(routine.ask(*solver_).status().code(), absl::StatusCode::kUnimplemented);
    g_library.status = CUSOLVER_STATUS_SUCCESS;
  }
}

TEST_F(SolverTest, SizeBeyond32BitsIsUnimplemented) {
  g_library.device_bytes = size_t{1} << 31;  // wraps to below 0 in the library's int
  const auto need = solver_->QWork(DType::kFloat64, kOrder, 40, 30, kArray);
  EXPECT_EQ(need.status().code(), absl::StatusCode::kUnimplemented) << need.status();
}

TEST_F(SolverTest, LibraryWithoutGeneralEigenvaluesIsNamed) {
  functions_.erase("cusolverDnXgeev");
  Open();
  const absl::Status status = solver_->EigWork(DType::kFloat64, true, kOrder, kArray).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_NE(status.message().find("cusolverDnXgeev"), absl::string_view::npos) << status;
  EXPECT_TRUE(solver_->LuWork(DType::kFloat64, 4, 4, kArray).ok());
  functions_.erase("cusolverDnXgetrf");
  auto older = Solver::Create(driver_, nullptr, [&](const char* name) -> void* {
    auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  });
  EXPECT_EQ(older.status().code(), absl::StatusCode::kUnimplemented) << older.status();
}

}  // namespace
}  // namespace stride::cuda
