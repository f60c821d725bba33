# Writes OUT, a C++ file with the text of each of FILES as a constant. CMake only, so that a build needs no other tool.
set(text "#include \"cpucuda/compiler/prelude_files.h\"\n\nnamespace stride::cpucuda {\nnamespace {\n")
set(rows "")
set(index 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND text "const char kFile${index}[] = {${bytes}'\\0'};\n")
  string(APPEND rows "    {\"${name}\", {kFile${index}, sizeof(kFile${index}) - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND text "const PreludeFile kFiles[] = {\n${rows}};\n}  // namespace\n\n"
  "const PreludeFile* PreludeFilesBegin() { return kFiles; }\n"
  "const PreludeFile* PreludeFilesEnd() { return kFiles + ${index}; }\n\n}  // namespace stride::cpucuda\n")
file(WRITE ${OUT} "${text}")
