#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "attnlab/io/tensor_archive.h"
#include "attnlab/io/zip_file.h"

namespace attnlab {

// An opened .npz file: a zip file (see ZipFile) of .npy files, as numpy.savez stores and
// numpy.savez_compressed deflates them. A tensor is called as its member, without ".npy". Floats
// that are stored as they lie in memory are mapped, as in a .npy file.
class NpzFile : public TensorArchive {
 public:
  // Throws InputError naming the file and, where one is at fault, the member.
  explicit NpzFile(InputFile file);

  const std::string& path() const override { return zip_.path(); }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override;
  // The member must be its array and nothing else, which is known before it is inflated.
  AnyTensor read(std::string_view name, std::vector<std::string>& notes) const override;
  // What the header of an array says, for which no more than that is read. Throws InputError when
  // it has a type that no Tensor has.
  TensorInfo info(std::string_view name) const;
  // Members that are no .npy files.
  const std::vector<std::string>& others() const { return others_; }

 private:
  const ZipMember& member(std::string_view name) const;

  ZipFile zip_;
  std::map<std::string, std::size_t, std::less<>> places_;  // in the members
  std::vector<std::string> others_;
};

}  // namespace attnlab
