# LLVM, Clang and lld 19 as one target, stride_llvm: shared libraries by default, archives for STRIDE_PORTABLE. Debian's
# package files require every optional library of LLVM's build, so this file finds only the needed ones.
set(STRIDE_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM 19 is installed")
find_path(STRIDE_LLVM_INCLUDE clang/Frontend/CompilerInstance.h HINTS ${STRIDE_LLVM_ROOT}/include NO_DEFAULT_PATH)

add_library(stride_llvm INTERFACE)
if(STRIDE_LLVM_INCLUDE)
  set(STRIDE_HAVE_LLVM ON)
  find_package(ZLIB REQUIRED)
  target_include_directories(stride_llvm SYSTEM INTERFACE ${STRIDE_LLVM_INCLUDE})
  target_compile_definitions(stride_llvm INTERFACE
    _GNU_SOURCE __STDC_CONSTANT_MACROS __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_link_libraries(stride_llvm INTERFACE
    ${STRIDE_LLVM_ROOT}/lib/liblldELF.a ${STRIDE_LLVM_ROOT}/lib/liblldCommon.a)
  if(STRIDE_PORTABLE)
    find_program(STRIDE_LLVM_CONFIG llvm-config HINTS ${STRIDE_LLVM_ROOT}/bin NO_DEFAULT_PATH REQUIRED)
    execute_process(COMMAND ${STRIDE_LLVM_CONFIG} --link-static --libs
      x86codegen x86asmparser x86desc x86info passes lto option target frontendopenmp frontendoffloading frontendhlsl
      frontenddriver windowsdriver coverage hipstdpar
      OUTPUT_VARIABLE llvm_libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(llvm_libraries)
    find_library(STRIDE_ZSTD_ARCHIVE NAMES libzstd.a REQUIRED)
    # lld's driver registers every target of LLVM's build. Only this machine's target is needed: empty functions replace
    # the other registrations and save a hundred megabytes.
    execute_process(COMMAND ${STRIDE_LLVM_CONFIG} --targets-built
      OUTPUT_VARIABLE targets OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(targets)
    list(REMOVE_ITEM targets X86)
    set(absent "")
    foreach(name ${targets})
      foreach(part TargetInfo Target TargetMC AsmPrinter AsmParser)
        string(APPEND absent "void LLVMInitialize${name}${part}(void) {}\n")
      endforeach()
    endforeach()
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gen/absent_llvm_targets.c CONTENT "${absent}" @ONLY)
    add_library(stride_absent_llvm_targets STATIC ${CMAKE_BINARY_DIR}/gen/absent_llvm_targets.c)
    set(clang_libraries)
    foreach(name
        Frontend Driver Serialization Parse Sema CodeGen Edit Analysis APINotes ASTMatchers AST Support Lex Basic)
      list(APPEND clang_libraries ${STRIDE_LLVM_ROOT}/lib/libclang${name}.a)
    endforeach()
    target_link_directories(stride_llvm INTERFACE ${STRIDE_LLVM_ROOT}/lib)
    target_link_libraries(stride_llvm INTERFACE
      -Wl,--start-group stride_absent_llvm_targets ${clang_libraries} ${llvm_libraries} -Wl,--end-group
      ZLIB::ZLIB ${STRIDE_ZSTD_ARCHIVE} rt dl m)
  else()
    target_link_libraries(stride_llvm INTERFACE
      ${STRIDE_LLVM_ROOT}/lib/libclang-cpp.so.19.1 ${STRIDE_LLVM_ROOT}/lib/libLLVM.so.19.1
      ZLIB::ZLIB zstd)  # lld's archives compress debug sections themselves
  endif()
else()
  set(STRIDE_HAVE_LLVM OFF)
  message(STATUS "LLVM 19 with Clang not found: the CPU device is not built; everything else is.")
endif()
