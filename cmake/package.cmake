# What `cmake --install` puts where, and how other projects find it:
#
#   bin/skep-server, bin/skep-check, ...
#   include/skep/*.h
#   lib/libskep.a               every library folder in one archive
#   lib/cmake/skep/             find_package(skep), target skep::skep
#   lib/pkgconfig/skep.pc       pkg-config --cflags --libs skep
#
# In this tree skep::skep is the same target, so that examples are written as users write them.

include(CMakePackageConfigHelpers)

set(objects)
foreach(library skep_base skep_engine_base skep_btree skep_hash skep_engine skep_durable
    skep_store)
  list(APPEND objects $<TARGET_OBJECTS:${library}>)
endforeach()
add_library(skep STATIC ${objects})
add_library(skep::skep ALIAS skep)
set_target_properties(skep PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(skep PUBLIC cxx_std_23)
target_include_directories(skep PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# skep-config.cmake.in and skep.pc.in name the same libraries.
target_link_libraries(skep PUBLIC fmt::fmt hwy::hwy zstd::libzstd_shared Threads::Threads)
if(SKEP_SANITIZE)
  target_compile_options(skep PUBLIC -fsanitize=${SKEP_SANITIZE})
  target_link_options(skep PUBLIC -fsanitize=${SKEP_SANITIZE})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/skep)
configure_package_config_file(cmake/skep-config.cmake.in skep-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(skep-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH SKEP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/skep.pc.in skep.pc @ONLY)

install(TARGETS skep EXPORT skep-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT skep-targets NAMESPACE skep:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skep-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/skep-config-version.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skep.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY include/skep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)

foreach(program skep-server skep-check skep-dump skep-bench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
