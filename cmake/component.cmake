# stride_component(name SRCS a.cc ... [TOGETHER [APART a.cc ...]] DEPS target ...) defines the static library
# stride_<name> of one folder. DEPS lists only the folders that it may include, so the link line is the architecture
# diagram. TOGETHER compiles several sources as one (STRIDE_UNITY), since most compile time is parsing the same headers.
# APART lists sources whose local names clash with those of others.
function(stride_component name)
  cmake_parse_arguments(ARG "TOGETHER" "" "SRCS;APART;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(stride_${name} STATIC ${ARG_SRCS})
    target_include_directories(stride_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
    target_link_libraries(stride_${name} PUBLIC ${ARG_DEPS})
    if(ARG_TOGETHER)
      stride_unity(stride_${name} APART ${ARG_APART})
    endif()
  else()
    add_library(stride_${name} INTERFACE)
    target_include_directories(stride_${name} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(stride_${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# stride_unity(target [APART a.cc ...]): compiles the target's sources together when STRIDE_UNITY is on.
function(stride_unity target)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${STRIDE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
