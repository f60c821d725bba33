# Additions to a sanitized build beyond the compiler's flags (cmake/options.cmake).

# stride_unsanitized(): compiles the calling folder as in the dev preset, so that the compiler cache has its objects.
macro(stride_unsanitized)
  if(STRIDE_SANITIZE)
    set_directory_properties(PROPERTIES COMPILE_OPTIONS "${STRIDE_PLAIN_OPTIONS}")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO ${STRIDE_PLAIN_FLAGS})
  endif()
endmacro()

if(STRIDE_SANITIZE MATCHES "thread")
  add_library(stride_tsan_mutex OBJECT ${CMAKE_SOURCE_DIR}/tests/sanitizers/tsan_mutex.cc)
  target_link_libraries(stride_tsan_mutex PRIVATE absl::synchronization)
  # Link it into every program before the library that it wraps.
  link_libraries($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:stride_tsan_mutex>>)
endif()
