# Build options; the presets combine them.
option(STRIDE_BUILD_TESTS "Build the tests" ON)
option(STRIDE_BUILD_BENCH "Build the benchmarks" ON)
option(STRIDE_PORTABLE "Link gRPC, protobuf, abseil, LLVM and libstdc++ statically" OFF)
option(STRIDE_BENCH_CUB "Compile CUB's algorithms, as baselines of cuda_operations_bench; needs nvcc" OFF)
set(STRIDE_SANITIZE "" CACHE STRING "Sanitizers: empty, address,undefined or thread")
option(STRIDE_UNITY
  "Compile a folder's sources several at a time: a third of the work for a whole build, more for one change" ON)
option(STRIDE_FUZZ "Build the fuzz targets with libFuzzer (Clang)" OFF)
set(STRIDE_CUDA "AUTO" CACHE STRING "Build stride-worker-cuda: AUTO (when a toolkit is found), ON or OFF")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# -g1 keeps line tables for backtraces and builds faster.
string(REPLACE "-g" "-g1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
# Keep assertions in every build type: no input may reach one, and a bug should be visible.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

get_directory_property(STRIDE_PLAIN_OPTIONS COMPILE_OPTIONS)
set(STRIDE_PLAIN_FLAGS ${CMAKE_CXX_FLAGS_RELWITHDEBINFO})
if(STRIDE_SANITIZE)
  # The checks multiply the code to optimise: -O1 compiles most files faster.
  string(REPLACE "-O2" "-O1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
  add_compile_options(-fsanitize=${STRIDE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${STRIDE_SANITIZE})
  if(STRIDE_SANITIZE MATCHES "thread")
    # Protobuf's headers lay out maps differently with the compiler's macro, and the installed library was built without
    # it.
    add_compile_options(-U__SANITIZE_THREAD__ -DSTRIDE_THREAD_SANITIZER)
  endif()
  if(STRIDE_SANITIZE MATCHES "undefined")
    # null: the address sanitizer already stops at the access. vptr: needs type information, which LLVM is built
    # without.
    add_compile_options(-fno-sanitize=null,vptr -fno-sanitize-recover=undefined)
  endif()
endif()

if(STRIDE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The build ID names the build in files that its programs write.
add_link_options(LINKER:--build-id=sha1)

find_program(STRIDE_CCACHE ccache)
if(STRIDE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${STRIDE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STRIDE_CCACHE})
endif()
find_program(STRIDE_MOLD mold)
if(STRIDE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(STRIDE_PORTABLE)
  add_link_options(-static-libgcc -static-libstdc++)
  # The programs must not look for libraries in a folder of the build machine.
  set(CMAKE_SKIP_RPATH ON)
endif()
