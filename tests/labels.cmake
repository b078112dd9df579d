# Labels, which .ci/run selects tests by. From left-out.txt: not-in-gpu, not-in-asan, not-in-tsan. From a test's source: `threads`, for
# ThreadSanitizer, and `terminal`, for a test that runs a program on a pseudo-terminal.
set(left_out_file ${CMAKE_CURRENT_LIST_DIR}/left-out.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${left_out_file})
file(STRINGS ${left_out_file} left_out_lines REGEX "^[^#]")

# gimbal_left_out_in(<test> <out>): the stages of CI that leave it out.
function(gimbal_left_out_in test out)
  set(stages "")
  foreach(line IN LISTS left_out_lines)
    if(NOT line MATCHES "^([a-z]+) \\| ([^|]+) \\| .")
      message(FATAL_ERROR "tests/left-out.txt: expected 'STAGE | TESTS | REASON', found '${line}'")
    endif()
    set(stage ${CMAKE_MATCH_1})
    string(REPLACE "*" ".*" patterns "${CMAKE_MATCH_2}")
    string(REPLACE " " "|" patterns "${patterns}")
    if(test MATCHES "^(${patterns})$")
      list(APPEND stages ${stage})
    endif()
  endforeach()
  set(${out} ${stages} PARENT_SCOPE)
endfunction()

# gimbal_labels_of_source(<source> <out>): what a test's source says about it. The device or the program that it runs may start the threads.
function(gimbal_labels_of_source source out)
  set(labels "")
  file(STRINGS ${source} threads REGEX "std::thread|threads=[2-9]|^// Threads: ")
  if(threads)
    list(APPEND labels threads)
  endif()
  file(STRINGS ${source} terminal REGEX "support/on_terminal.h")
  if(terminal)
    list(APPEND labels terminal)
  endif()
  set(${out} ${labels} PARENT_SCOPE)
endfunction()

# Whether a test runs under tsan in CI, in <out>. The fakes of a backend define a type that the CPU backend has, too: in one program with
# others, ThreadSanitizer takes the wrong one, so these are not merged.
function(gimbal_merged_for_tsan test source out)
  gimbal_left_out_in(${test} stages)
  gimbal_labels_of_source(${source} labels)
  file(STRINGS ${source} fakes REGEX "support/fake_backend.h")
  set(${out} FALSE PARENT_SCOPE)
  if(threads IN_LIST labels AND NOT tsan IN_LIST stages AND NOT fakes)
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Of all tests of this folder that have been added.
function(gimbal_label_left_out)
  get_property(all DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS all)
    gimbal_left_out_in(${test} stages)
    foreach(stage IN LISTS stages)
      set_property(TEST ${test} APPEND PROPERTY LABELS not-in-${stage})
    endforeach()
  endforeach()
endfunction()
