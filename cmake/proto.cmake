# stride_proto_library(target ROOT dir PROTOS rel/a.proto ... [GRPC] DEPS ...)
# Generates C++ into the build tree. GRPC generates only the service stubs, so that files that only need messages parse
# no gRPC header.
function(stride_proto_library target)
  cmake_parse_arguments(ARG "GRPC" "ROOT" "PROTOS;DEPS" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  set(generated)
  foreach(proto ${ARG_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    if(ARG_GRPC)
      set(files ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      set(flags --grpc_out=${out} --plugin=protoc-gen-grpc=${STRIDE_GRPC_CPP_PLUGIN})
    else()
      set(files ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
      set(flags --cpp_out=${out})
    endif()
    add_custom_command(
      OUTPUT ${files}
      COMMAND ${STRIDE_PROTOC} ${flags} -I ${ARG_ROOT} -I ${CMAKE_SOURCE_DIR}/proto ${proto}
      DEPENDS ${ARG_ROOT}/${proto}
      VERBATIM)
    list(APPEND generated ${files})
  endforeach()
  add_library(${target} STATIC ${generated})
  target_include_directories(${target} SYSTEM PUBLIC $<BUILD_INTERFACE:${out}>)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS})
  target_compile_options(${target} PRIVATE -w)
  # Generated files define equal static names.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()
