#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace attnlab::test {

// A member to be, and what is to be wrong with it.
struct ZipPart {
  std::string name = {};
  std::string bytes = {};
  bool deflated = false;
  bool wide = false;  // its sizes and place in fields of ZIP64
  std::uint16_t flags = 0;
  std::uint64_t more_size = 0;  // added to the size it says
  std::uint32_t crc_error = 0;
  std::string packed = {};  // in place of what the bytes make
};

struct ZipEnd {
  bool wide = false;  // with ZIP64's own end record
  std::uint64_t more_entries = 0;
  std::uint64_t more_start = 0;
  std::string comment = {};
};

inline std::string deflate_bytes(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<unsigned char*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

// Little endian, in `count` bytes.
inline std::string le(std::uint64_t value, std::size_t count) {
  std::string bytes = {};
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

inline std::string zip_of(const std::vector<ZipPart>& parts, const ZipEnd& end = {}) {
  std::string file, directory;
  for (const ZipPart& part : parts) {
    const std::string made = part.deflated ? deflate_bytes(part.bytes) : part.bytes;
    const std::string& packed = part.packed.empty() ? made : part.packed;
    const std::uint64_t size = part.bytes.size() + part.more_size;
    const auto crc = crc32(0, reinterpret_cast<const unsigned char*>(part.bytes.data()),
                           static_cast<uInt>(part.bytes.size())) ^
                     part.crc_error;
    const std::string kind =
        le(part.flags, 2) + le(part.deflated ? 8 : 0, 2) + le(0, 4) + le(crc, 4);
    const std::string sizes =
        part.wide ? le(0xFFFFFFFF, 4) + le(0xFFFFFFFF, 4) : le(packed.size(), 4) + le(size, 4);
    const std::string wide_sizes = le(size, 8) + le(packed.size(), 8);
    const std::string local_extra = part.wide ? le(1, 2) + le(16, 2) + wide_sizes : "";
    const std::string extra = part.wide ? le(0x5455, 2) + le(1, 2) + "x" + le(1, 2) + le(24, 2) +
                                              wide_sizes + le(file.size(), 8)
                                        : "";
    directory += le(0x02014b50, 4) + le(45, 2) + le(45, 2) + kind + sizes +
                 le(part.name.size(), 2) + le(extra.size(), 2) + le(0, 2) + le(0, 2) + le(0, 2) +
                 le(0, 4) + le(part.wide ? 0xFFFFFFFF : file.size(), 4) + part.name + extra;
    file += le(0x04034b50, 4) + le(45, 2) + kind + sizes + le(part.name.size(), 2) +
            le(local_extra.size(), 2) + part.name + local_extra + packed;
  }
  const std::uint64_t start = file.size() + end.more_start;
  const std::uint64_t entries = parts.size() + end.more_entries;
  const std::uint64_t end64_start = file.size() + directory.size();
  file += directory;
  if (end.wide) {
    file += le(0x06064b50, 4) + le(44, 8) + le(45, 2) + le(45, 2) + le(0, 4) + le(0, 4) +
            le(entries, 8) + le(entries, 8) + le(directory.size(), 8) + le(start, 8);
    file += le(0x07064b50, 4) + le(0, 4) + le(end64_start, 8) + le(1, 4);
  }
  const std::uint64_t counted = end.wide ? 0xFFFF : entries;
  return file + le(0x06054b50, 4) + le(0, 2) + le(0, 2) + le(counted, 2) + le(counted, 2) +
         le(end.wide ? 0xFFFFFFFF : directory.size(), 4) + le(end.wide ? 0xFFFFFFFF : start, 4) +
         le(end.comment.size(), 2) + end.comment;
}

}  // namespace attnlab::test
