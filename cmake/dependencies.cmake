# Every foreign library gets one alias here; no other file names a package.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
if(STRIDE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(STRIDE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()

find_program(STRIDE_PROTOC protoc REQUIRED)
find_program(STRIDE_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

# google/rpc/*.proto come with the googleapis-common-protos package that scripts/setup puts in .venv.
file(GLOB _stride_googleapis ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages)
find_path(STRIDE_GOOGLEAPIS_DIR google/rpc/error_details.proto
  HINTS ${_stride_googleapis} ENV STRIDE_GOOGLEAPIS_DIR REQUIRED)

add_library(stride_protobuf INTERFACE)
target_link_libraries(stride_protobuf INTERFACE protobuf::libprotobuf Threads::Threads)
add_library(stride_grpc INTERFACE)
target_link_libraries(stride_grpc INTERFACE gRPC::grpc++ stride_protobuf)
add_library(stride_crypto INTERFACE)
target_link_libraries(stride_crypto INTERFACE OpenSSL::Crypto)
add_library(stride_blas INTERFACE)
target_link_libraries(stride_blas INTERFACE PkgConfig::OPENBLAS)
add_library(stride_spdlog INTERFACE)
target_link_libraries(stride_spdlog INTERFACE spdlog::spdlog_header_only)

include(llvm)

# The CUDA worker needs the toolkit's headers alone: the driver, NVRTC and cuBLAS are opened at run time.
find_path(STRIDE_CUDA_INCLUDE cuda.h HINTS /usr/local/cuda/include ENV CUDA_HOME PATH_SUFFIXES include)
if(STRIDE_CUDA STREQUAL "AUTO")
  if(STRIDE_CUDA_INCLUDE)
    set(STRIDE_HAVE_CUDA ON)
  else()
    set(STRIDE_HAVE_CUDA OFF)
    message(STATUS "No CUDA toolkit found: stride-worker-cuda is not built; everything else is.")
  endif()
else()
  set(STRIDE_HAVE_CUDA ${STRIDE_CUDA})
endif()
