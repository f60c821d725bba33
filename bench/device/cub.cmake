# bench_cub: cub_work.cu, compiled by nvcc for an H100 and linked with the static CUDA runtime. It needs a driver of the
# toolkit's version at run time and no other part of the toolkit. Without nvcc there is no target.
find_program(STRIDE_NVCC nvcc HINTS ${STRIDE_CUDA_INCLUDE}/../bin /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
find_library(STRIDE_CUDA_RUNTIME libcudart_static.a
  HINTS ${STRIDE_CUDA_INCLUDE}/../lib64 ${STRIDE_CUDA_INCLUDE}/../lib /usr/local/cuda/lib64 /usr/local/cuda/lib)
if(NOT STRIDE_NVCC OR NOT STRIDE_CUDA_RUNTIME)
  message(STATUS "No nvcc with libcudart_static.a found: cuda_operations_bench has no rows next to CUB.")
  return()
endif()
set(object ${CMAKE_CURRENT_BINARY_DIR}/cub_work.o)
add_custom_command(OUTPUT ${object}
  COMMAND ${STRIDE_CCACHE} ${STRIDE_NVCC} -c -std=c++17 -O3 -arch=sm_90 -ccbin ${CMAKE_CXX_COMPILER}
          -I${CMAKE_SOURCE_DIR}
    -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/cub_work.cu
  DEPENDS cub_work.cu cub_work.h
  COMMENT "Compiling CUB's algorithms for sm_90")
add_library(bench_cub STATIC ${object})
set_target_properties(bench_cub PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(bench_cub PUBLIC ${STRIDE_CUDA_RUNTIME} rt dl pthread)
