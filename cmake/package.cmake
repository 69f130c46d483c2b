# What `cmake --install` puts where, and how other projects find it:
#
#   bin/skep-server, bin/skep-check, ...
#   include/skep.h              the C interface; include/skep/*.h, the C++ one
#   lib/libskep.a               every library folder in one archive
#   lib/libskep.so.0.1          the same code; shows the C interface only
#   lib/cmake/skep/             find_package(skep), targets skep::skep and skep::skep_shared
#   lib/pkgconfig/skep.pc       pkg-config --cflags --libs skep: the archive
#   share/skep/python           the C interface for Python
#   share/skep                  a configuration file, a unit of systemd, a rule for logrotate
#
# In this tree skep::skep is the same target, so that examples are written as users write them.

include(CMakePackageConfigHelpers)

set(objects)
foreach(library skep_base skep_types skep_engine skep_btree skep_hash skep_hashleaf skep_collections skep_model
    skep_rma skep_leaves skep_pool skep_ranges skep_keyspace skep_durable skep_wire skep_client
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
target_link_libraries(skep PUBLIC fmt::fmt hwy::hwy hwy::hwy_contrib zstd::libzstd_shared Threads::Threads)
if(SKEP_SANITIZE)
  target_compile_options(skep PUBLIC -fsanitize=${SKEP_SANITIZE})
  target_link_options(skep PUBLIC -fsanitize=${SKEP_SANITIZE})
endif()

# For C, and for whatever loads libraries. All it shows are the functions of skep.h, so that the C++
# in it meets no other.
add_library(skep_shared SHARED ${objects})
add_library(skep::skep_shared ALIAS skep_shared)
set(symbols ${PROJECT_SOURCE_DIR}/cmake/skep.map)
set_target_properties(skep_shared PROPERTIES
  OUTPUT_NAME skep LINKER_LANGUAGE CXX LINK_DEPENDS ${symbols}
  # Where the modules are, too.
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}
  VERSION ${PROJECT_VERSION} SOVERSION ${SKEP_SO_VERSION})
target_include_directories(skep_shared PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(skep_shared PRIVATE LINKER:--version-script=${symbols})
target_link_libraries(skep_shared
  PRIVATE fmt::fmt hwy::hwy hwy::hwy_contrib zstd::libzstd_shared Threads::Threads)
if(SKEP_SANITIZE)
  target_link_options(skep_shared PUBLIC -fsanitize=${SKEP_SANITIZE})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/skep)
configure_package_config_file(cmake/skep-config.cmake.in skep-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(skep-config-version.cmake COMPATIBILITY SameMinorVersion)
file(RELATIVE_PATH SKEP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/skep.pc.in skep.pc @ONLY)

install(TARGETS skep skep_shared EXPORT skep-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT skep-targets NAMESPACE skep:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skep-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/skep-config-version.cmake DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/skep.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES include/skep.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/skep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)

install(FILES python/skep.py python/skep_arguments.py DESTINATION ${CMAKE_INSTALL_DATADIR}/skep/python)
install(FILES tools/etc/skep.toml tools/etc/skep-server.service tools/etc/skep.logrotate
  DESTINATION ${CMAKE_INSTALL_DATADIR}/skep)

foreach(program skep-server skep-cli skep-check skep-dump skep-netindex skep-pool skep-bench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
