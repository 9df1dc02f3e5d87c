#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attnlab/io/input_file.h"

namespace attnlab {

// What the directory of a zip file says of one of its members.
struct ZipMember {
  std::string name;
  std::uint64_t size = 0;    // of its bytes
  std::uint64_t packed = 0;  // of what the file has of them
  std::uint64_t data = 0;    // where that begins
  std::uint32_t crc = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
};

// An opened zip file (PKWARE's APPNOTE.TXT 6.3.10), with ZIP64: read through the directory at its
// end. It is checked as a whole when the file is opened: members lie in the file one after the
// other, none over another or over the directory, no name stands twice, and the directory and the
// members' own headers agree. One file in one piece only. Nothing is allocated before the file is
// known to hold it.
class ZipFile {
 public:
  // Throws InputError naming the file and, where one is at fault, the member.
  explicit ZipFile(InputFile file);

  const std::string& path() const { return file_.name(); }
  // In the order of the file.
  const std::vector<ZipMember>& members() const { return members_; }

  // All bytes of a member, called FILE:`name` in errors, their checksum tested. Of a stored member
  // they stay in the file; a deflated one is inflated into memory. Throws InputError when the
  // member is encrypted, packed by another method, damaged, or too big for the memory or for
  // what deflate can make of its packed bytes (1032 times as many).
  InputFile open(const ZipMember& member, const std::string& name) const;
  // At most `count` bytes from the start of a member, without the checksum.
  InputFile head(const ZipMember& member, const std::string& name, std::uint64_t count) const;

 private:
  InputFile file_;
  std::vector<ZipMember> members_;
};

}  // namespace attnlab
