# Code that packages contain compiled: it takes minutes of processor time per target. A development build compiles it
# only on request, and only for the more portable of its processors.
set(precompile OFF)
set(targets cpu:x86-64-v3)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(precompile ON)
  set(targets cpu:x86-64-v3,cpu:x86-64-v4)
  # The worker opens NVRTC at run time, so a build may lack it. File names include NVRTC's version: a machine with
  # another version compiles at run time.
  find_library(STRIDE_NVRTC NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12
    HINTS ${STRIDE_CUDA_INCLUDE}/.. /usr/local/cuda ENV CUDA_HOME PATH_SUFFIXES lib64 lib)
  if(STRIDE_HAVE_CUDA AND STRIDE_NVRTC)
    string(APPEND targets ,cuda:sm_90)
  endif()
endif()
option(STRIDE_PRECOMPILE "Compile operations over element types with the product" ${precompile})
set(STRIDE_PRECOMPILED_TARGETS ${targets} CACHE STRING
  "Targets of the code that is compiled with the product, such as cuda:sm_90")
