# What a sanitized build needs beyond the compiler's flags (cmake/options.cmake).

# stride_unsanitized(): the calling folder's code is compiled as in the dev preset, and so comes out of the
# compiler cache.
macro(stride_unsanitized)
  if(STRIDE_SANITIZE)
    set_directory_properties(PROPERTIES COMPILE_OPTIONS "${STRIDE_PLAIN_OPTIONS}")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO ${STRIDE_PLAIN_FLAGS})
  endif()
endmacro()

if(STRIDE_SANITIZE MATCHES "thread")
  add_library(stride_tsan_mutex OBJECT ${CMAKE_SOURCE_DIR}/tests/sanitizers/tsan_mutex.cc)
  target_link_libraries(stride_tsan_mutex PRIVATE absl::synchronization)
  # Into every program, ahead of the library that it wraps.
  link_libraries($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:stride_tsan_mutex>>)
endif()
