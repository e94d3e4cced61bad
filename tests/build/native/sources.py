"""Source trees as dictionaries, and a small one that is built as vLLM is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Files:
    """A tree to plan from."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(sorted(files.items()))

    def read(self, path: str) -> bytes | None:
        text = self._files.get(path)
        return None if text is None else text.encode()

    def paths(self) -> Iterator[str]:
        return iter(self._files)


UTILS = r"""
function (cuda_archs_loose_intersection OUT SRC TGT)
  set(_FOUND)
  foreach(_ARCH ${SRC})
    string(REGEX REPLACE "[af]$" "" _BASE "${_ARCH}")
    if("${_BASE}" IN_LIST TGT)
      list(APPEND _FOUND "${_ARCH}")
    endif()
  endforeach()
  set(${OUT} ${_FOUND} PARENT_SCOPE)
endfunction()

macro (plain OUT FLAGS)
  string(REGEX MATCH "code=sm_([0-9]+)([0-9])" _ "${FLAGS}")
  set(${OUT} "${CMAKE_MATCH_1}.0")
endmacro()
"""

CMAKE = """
cmake_minimum_required(VERSION 3.26)
set(CMAKE_CUDA_STANDARD 20)
set(VLLM_TARGET_DEVICE "cuda" CACHE STRING "device")
include(${CMAKE_CURRENT_LIST_DIR}/cmake/utils.cmake)
if(VLLM_TARGET_DEVICE STREQUAL "cpu")
  define_extension_target(_C DESTINATION vllm LANGUAGE CXX SOURCES csrc/cpu/a.cpp)
  return()
endif()
if(NOT HIP_FOUND AND CUDA_FOUND)
  set(VLLM_GPU_LANG "CUDA")
else()
  set(VLLM_GPU_LANG "HIP")
endif()
clear_cuda_gencode_flags(FLAGS)
plain(CUDA_ARCHS "${FLAGS}")
get_torch_gpu_compiler_flags(VLLM_GPU_FLAGS ${VLLM_GPU_LANG})
set(SRC # a comment
  "csrc/bindings.cpp" "csrc/a.cu")
if(VLLM_GPU_LANG STREQUAL "CUDA")
  set_gencode_flags_for_srcs(SRCS "${SRC}" CUDA_ARCHS "${CUDA_ARCHS}")
  foreach(WANTED 9.0a 12.0f)
    cuda_archs_loose_intersection(ARCHS "${WANTED}" "${CUDA_ARCHS}")
    if(ARCHS)
      string(REGEX REPLACE "[^0-9]" "" DIGITS "${WANTED}")
      set_gencode_flags_for_srcs(SRCS "csrc/sm${DIGITS}.cu" CUDA_ARCHS "${ARCHS}")
      list(APPEND SRC "csrc/sm${DIGITS}.cu")
      list(APPEND VLLM_GPU_FLAGS "-DENABLE_SM${DIGITS}=1")
    endif()
  endforeach()
  set(GEN ${CMAKE_CURRENT_SOURCE_DIR}/csrc/gen/make.py)
  execute_process(COMMAND ${Python_EXECUTABLE} ${GEN})
  file(GLOB MADE "csrc/gen/kernel_*.cu")
  list(APPEND SRC ${MADE})
endif()
define_extension_target(
  _C_stable
  DESTINATION vllm
  LANGUAGE ${VLLM_GPU_LANG}
  SOURCES ${SRC}
  COMPILE_FLAGS ${VLLM_GPU_FLAGS}
  INCLUDE_DIRECTORIES ${CUTLASS_INCLUDE_DIR}
  USE_SABI 3
  WITH_SOABI)
target_compile_definitions(_C_stable PRIVATE USE_CUDA)
define_extension_target(_moe_C DESTINATION vllm LANGUAGE CUDA SOURCES csrc/moe/moe.cu WITH_SOABI)
include(cmake/other.cmake)
"""

OTHER = """
include(FetchContent)
FetchContent_Declare(cutlass GIT_REPOSITORY https://example.org/cutlass.git GIT_TAG v1)
"""

BINDINGS = """
STABLE_TORCH_LIBRARY_FRAGMENT(_C, ops) {
  // ops.def("gone(Tensor a) -> ()");
  ops.def(
      "scale(Tensor! out, Tensor a, float by=1.0, *, int[2]? sizes=None) "
      "-> ()");
  ops.impl("scale", &scale);
}
STABLE_TORCH_LIBRARY_IMPL(_C, CUDA, ops) {
  ops.impl("scale", TORCH_BOX(&scale));
}
"""

VLLM: Mapping[str, str] = {
    "CMakeLists.txt": CMAKE,
    "cmake/utils.cmake": UTILS,
    "cmake/other.cmake": OTHER,
    "csrc/bindings.cpp": '#include "ops.h"\n' + BINDINGS,
    "csrc/ops.h": "#pragma once\n",
    "csrc/a.cu": '#include <cuda_runtime.h>\n#include "util/a.cuh"\n',
    "csrc/util/a.cuh": '#pragma once\n#include "../ops.h"\n#include "b.cuh"\n',
    "csrc/util/b.cuh": '#pragma once\n#include "a.cuh"\n',
    "csrc/sm90.cu": '#include "util/b.cuh"\n',
    "csrc/sm120.cu": '#include "cutlass/gemm.h"\n',
    "csrc/moe/moe.cu": "__global__ void moe() {}\n",
    "csrc/gen/make.py": "TEMPLATE = '#include \"kernel.h\"'\n",
    "csrc/gen/kernel.h": "#pragma once\n",
    "csrc/cpu/a.cpp": "",
    "csrc/README.md": "",
    "csrc/table.inc": "",
    "rust/lib.rs": "",
    "vllm/ops.py": "import torch\n\ndef scale(out, a):\n    torch.ops._C.scale(out, a, 2.0)\n",
}
