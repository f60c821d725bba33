# stride_component(name SRCS a.cc ... DEPS target ...): one folder, one static library named stride_<name>.
# The link line is the architecture diagram: DEPS lists only what the folder may see.
function(stride_component name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(stride_${name} STATIC ${ARG_SRCS})
    target_include_directories(stride_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
    target_link_libraries(stride_${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(stride_${name} INTERFACE)
    target_include_directories(stride_${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(stride_${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()
