#pragma once

#include <string>
#include <string_view>

namespace attnlab {

// A folder that appears whole or not at all: its files are written into a temporary one beside the
// target (the folder that a symbolic link points to), which takes its place on commit() and is
// removed otherwise. Every function throws InputError naming the field and the path.
class AtomicFolder {
 public:
  // `path` must be free, or a folder that is not worked in.
  AtomicFolder(const std::string& path, std::string_view field);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  AtomicFolder(AtomicFolder&&) = delete;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();

  // Where the file that will be `name` ("output.npy", "reference/output.npy") is to be written; its
  // folder is made.
  std::string file(const std::string& name) const;
  // Puts the folder in its place. One that stood there is removed with all it held: whether it may
  // be is for the caller to know.
  void commit();

 private:
  void create_temporary();
  bool exchange() const;
  [[noreturn]] void fail(int error) const;

  std::string path_;   // as the user wrote it
  std::string field_;  // the option that named it
  std::string target_;
  std::string temporary_;  // empty once in its place
};

// Throws InputError naming `field` when a folder could not be created at `path`. Leaves nothing
// behind.
void check_folder_writable(const std::string& path, std::string_view field);

}  // namespace attnlab
