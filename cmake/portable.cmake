# STRIDE_PORTABLE links every library but glibc from Debian's static archives. A stripped binary then runs on any x86-64
# Linux with glibc 2.36 or later. ci/check-portable verifies the products.

# Prefers static libraries in CMake's own find modules. Call it before find_package.
macro(stride_prefer_archives)
  set(Protobuf_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(ZLIB_USE_STATIC_LIBS ON)
endmacro()

# Debian's CMake packages name only shared libraries; replace them by the archives of the same name in the same folder.
function(stride_link_archives)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "SHARED_LIBRARY" OR NOT target MATCHES "^(absl|gRPC)::")
      continue()
    endif()
    get_target_property(location ${target} IMPORTED_LOCATION_NONE)
    if(location)
      string(REGEX REPLACE "\\.so.*$" ".a" archive ${location})
      if(NOT EXISTS ${archive})
        message(FATAL_ERROR "STRIDE_PORTABLE needs ${archive}")
      endif()
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${archive})
    endif()
  endforeach()

  find_library(STRIDE_CARES_ARCHIVE NAMES libcares.a REQUIRED)
  set_target_properties(c-ares::cares PROPERTIES IMPORTED_LOCATION ${STRIDE_CARES_ARCHIVE})
  find_library(STRIDE_RE2_ARCHIVE NAMES libre2.a REQUIRED)
  set_target_properties(re2::re2 PROPERTIES INTERFACE_LINK_LIBRARIES "${STRIDE_RE2_ARCHIVE};Threads::Threads")
  # Debian's spdlog uses the shared libfmt; use fmt's headers only.
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
    INTERFACE_LINK_LIBRARIES "Threads::Threads;fmt::fmt-header-only")
endfunction()
