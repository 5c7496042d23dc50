# Finds nvcc and says how kernels are compiled with it: for every architecture of ours that it
# knows, without contraction, without fast math. Plain commands rather than CMake's language CUDA:
# the same files are also C++ (emu/), and CMake 3.25 knows no CUDA 13.
#
# Sets ASSAY_NVCC (empty where there is none, or where ASSAY_CUDA is OFF), ASSAY_CUDART, and
# ASSAY_CAPABILITIES, a text that names what the kernels are compiled for.
set(ASSAY_CUDA AUTO CACHE STRING "Compile the kernels with nvcc: AUTO (where there is one), ON, OFF")
set_property(CACHE ASSAY_CUDA PROPERTY STRINGS AUTO ON OFF)

set(ASSAY_NVCC "")
if(ASSAY_CUDA STREQUAL "OFF")
  message(STATUS "The kernels are not compiled for a GPU: ASSAY_CUDA is OFF. The emulator runs them.")
  return()
endif()
find_program(ASSAY_FOUND_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
mark_as_advanced(ASSAY_FOUND_NVCC)
if(NOT ASSAY_FOUND_NVCC)
  set(absent "there is no nvcc in PATH, CUDA_PATH or /usr/local/cuda")
else()
  execute_process(COMMAND ${ASSAY_FOUND_NVCC} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  set(architectures)
  set(lacking)
  foreach(architecture 80 90 100)
    if(known MATCHES "sm_${architecture}[\r\n]")
      list(APPEND architectures ${architecture})
    else()
      list(APPEND lacking sm_${architecture})
    endif()
  endforeach()
  # nvcc may be a link or a script elsewhere: it says where it belongs.
  execute_process(COMMAND ${ASSAY_FOUND_NVCC} -dryrun -x cu -c /dev/null OUTPUT_VARIABLE said
                  ERROR_VARIABLE said)
  string(REGEX MATCH "TOP=([^\r\n]*)" said "${said}")
  get_filename_component(toolkit "${CMAKE_MATCH_1}" ABSOLUTE)
  find_library(ASSAY_CUDART libcudart_static.a NO_DEFAULT_PATH PATHS ${toolkit}
               PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib lib/x86_64-linux-gnu)
  mark_as_advanced(ASSAY_CUDART)
  if(NOT architectures)
    set(absent "${ASSAY_FOUND_NVCC} compiles for none of sm_80, sm_90 and sm_100")
  elseif(NOT ASSAY_CUDART)
    set(absent "the toolkit of ${ASSAY_FOUND_NVCC} has no libcudart_static.a")
  endif()
endif()
if(absent)
  if(ASSAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ASSAY_CUDA is ON, but ${absent}.")
  endif()
  message(NOTICE "The kernels are not compiled for a GPU: ${absent}. The emulator runs them.")
  return()
endif()
set(ASSAY_NVCC ${ASSAY_FOUND_NVCC})

# PTX goes along: devices that are newer translate the last one's, and check_code.py reads from
# the library, so uncompressed, what will run and what it was made of.
set(ASSAY_NVCC_FLAGS -std=c++17 -O3 -fmad=false -ccbin ${CMAKE_CXX_COMPILER} -no-compress
    -I${PROJECT_SOURCE_DIR} -Xcompiler=-ffp-contract=off,-fPIC,-Wall,-Wextra,-Wshadow)
foreach(a ${architectures})
  list(APPEND ASSAY_NVCC_FLAGS "-gencode=arch=compute_${a},code=[sm_${a},compute_${a}]")
endforeach()
if(ASSAY_WERROR)
  list(APPEND ASSAY_NVCC_FLAGS -Werror=all-warnings)
endif()
list(JOIN architectures ", " ASSAY_CAPABILITIES) # 80, 90, 100 become 8.0, 9.0, 10.0
string(REGEX REPLACE "0(,|$)" ".0\\1" ASSAY_CAPABILITIES "${ASSAY_CAPABILITIES}")
list(JOIN architectures ", sm_" text)
message(STATUS "The kernels are compiled by ${ASSAY_NVCC} for sm_${text}")
if(lacking)
  list(JOIN lacking ", " text)
  message(NOTICE "They are not compiled for ${text}, which it does not know; CUDA 13.0 does. The test "
                 "gpu/machine-code fails.")
endif()

# assay_cuda_objects(VARIABLE sources... [FLAGS flags...]): *VARIABLE = the object files
# of the sources, compiled with these flags too.
function(assay_cuda_objects variable)
  cmake_parse_arguments(ask "" "" "FLAGS" ${ARGN})
  set(objects)
  foreach(source ${ask_UNPARSED_ARGUMENTS})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(source ${source} ABSOLUTE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
    add_custom_command(
      OUTPUT ${object} COMMAND ${ASSAY_NVCC} ${ASSAY_NVCC_FLAGS} ${ask_FLAGS} -MMD -MF ${object}.d
                               -MT ${object} -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${name}.cu" VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
