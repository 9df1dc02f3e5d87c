#include "attnlab/io/zip_directory.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"

namespace attnlab {
namespace {

// The records of the format: their signatures and lengths without what varies.
constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kEntrySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kEntryBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint64_t kLocator64Bytes = 20;
constexpr std::uint64_t kMostComment = 0xFFFF;
// In a field of 16 or 32 bits: the number stands in a wider one.
constexpr std::uint64_t kWider16 = 0xFFFF;
constexpr std::uint64_t kWider32 = 0xFFFFFFFF;

// Little-endian numbers out of bytes that are known to hold them.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t at, std::size_t count) const {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    }
    return value;
  }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(std::size_t at) const { return number(at, 8); }

 private:
  std::string_view bytes_;
};

// Where the directory lies.
struct Directory {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t end = 0;  // where its end record begins
  bool split = false;     // over several files
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const InputFile& file) : file_(file) {}

  std::vector<ZipMember> read() {
    const Directory directory = find_directory();
    require_memory(2 * directory.bytes, file_.name());
    const std::string bytes = part(directory.start, directory.bytes);
    std::string_view rest = bytes;
    std::vector<ZipMember> members;
    while (!rest.empty()) members.push_back(take_entry(rest));
    if (members.size() != directory.entries) {
      fail("directory", std::to_string(members.size()) + " entries",
           "its end says " + std::to_string(directory.entries));
    }
    check_layout(members, directory.start);
    check_names(members);
    return members;
  }

 private:
  std::string part(std::uint64_t offset, std::uint64_t count) const {
    std::string bytes(static_cast<std::size_t>(count), '\0');
    file_.read(offset, bytes.data(), bytes.size());
    return bytes;
  }

  // The record at the end of the file whose comment reaches exactly to the end.
  Directory find_directory() const {
    const std::uint64_t tail_bytes = std::min(file_.size(), kEndBytes + kMostComment);
    const std::uint64_t tail_start = file_.size() - tail_bytes;
    const std::string tail = part(tail_start, tail_bytes);
    for (std::uint64_t at = tail_bytes < kEndBytes ? 0 : tail_bytes - kEndBytes + 1; at-- > 0;) {
      const Record end(std::string_view(tail).substr(at));
      if (end.u32(0) == kEndSignature && at + kEndBytes + end.u16(20) == tail_bytes) {
        return directory_of(end, tail_start + at);
      }
    }
    fail("", "", "is not a .npz file, or cut short: it has no zip directory at its end");
  }

  Directory directory_of(const Record& end, std::uint64_t end_start) const {
    Directory directory = {
        .start = end.u32(16),
        .bytes = end.u32(12),
        .entries = end.u16(10),
        .end = end_start,
        .split = end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != end.u16(10)};
    const bool wide =
        directory.entries == kWider16 || directory.bytes == kWider32 || directory.start == kWider32;
    if (wide) directory = wider_directory(directory);
    if (directory.split) fail("", "", "is one piece of a split zip file, which is not read");
    if (directory.start > directory.end || directory.bytes != directory.end - directory.start) {
      fail("directory",
           std::to_string(directory.bytes) + " bytes at " + std::to_string(directory.start),
           "it must end where its end record begins, at " + std::to_string(directory.end));
    }
    if (directory.entries > directory.bytes / kEntryBytes) {
      fail("directory", std::to_string(directory.entries) + " entries",
           "its " + std::to_string(directory.bytes) + " bytes cannot hold them");
    }
    return directory;
  }

  // What ZIP64's own end record says, where a locator before the end tells of one.
  Directory wider_directory(const Directory& narrow) const {
    if (narrow.end < kLocator64Bytes) return narrow;
    const std::uint64_t locator_start = narrow.end - kLocator64Bytes;
    const std::string locator_bytes = part(locator_start, kLocator64Bytes);
    const Record locator(locator_bytes);
    if (locator.u32(0) != kLocator64Signature) return narrow;
    const std::uint64_t start = locator.u64(8);
    if (start > locator_start || locator_start - start < kEnd64Bytes) {
      fail("directory", "its ZIP64 end at " + std::to_string(start),
           "it does not lie before the end of the file");
    }
    const std::string end_bytes = part(start, kEnd64Bytes);
    const Record end(end_bytes);
    if (end.u32(0) != kEnd64Signature) {
      fail("directory", "", "its ZIP64 end is not where the file says");
    }
    return {.start = end.u64(48),
            .bytes = end.u64(40),
            .entries = end.u64(32),
            .end = start,
            .split = end.u32(16) != 0 || end.u32(20) != 0 || end.u64(24) != end.u64(32)};
  }

  // Cuts one entry off the directory's bytes. `data` is where the member's own header begins.
  ZipMember take_entry(std::string_view& rest) const {
    const Record entry(rest);
    if (rest.size() < kEntryBytes || entry.u32(0) != kEntrySignature) {
      fail("directory", "", "an entry is cut short or damaged");
    }
    const std::size_t name_bytes = entry.u16(28);
    const std::size_t extra_bytes = entry.u16(30);
    const std::size_t bytes = kEntryBytes + name_bytes + extra_bytes + entry.u16(32);
    if (bytes > rest.size()) fail("directory", "", "an entry is cut short or damaged");
    ZipMember member = {.name = std::string(rest.substr(kEntryBytes, name_bytes)),
                        .size = entry.u32(24),
                        .packed = entry.u32(20),
                        .data = entry.u32(42),
                        .crc = entry.u32(16),
                        .flags = entry.u16(8),
                        .method = entry.u16(10)};
    if (entry.u16(34) != 0 && entry.u16(34) != kWider16) {
      fail(member.name, "", "lies in another piece of a split zip file");
    }
    widen(member, rest.substr(kEntryBytes + name_bytes, extra_bytes));
    rest.remove_prefix(bytes);
    return member;
  }

  // Takes what does not fit 32 bits from the extra field of ZIP64, which holds that only.
  void widen(ZipMember& member, std::string_view extra) const {
    constexpr std::size_t kHead = 4;
    constexpr std::uint16_t kZip64 = 1;
    std::string_view wide;
    while (extra.size() >= kHead) {
      const Record head(extra);
      const std::size_t bytes = head.u16(2);
      if (bytes > extra.size() - kHead) fail(member.name, "", "its extra field is cut short");
      if (head.u16(0) == kZip64) wide = extra.substr(kHead, bytes);
      extra.remove_prefix(kHead + bytes);
    }
    for (std::uint64_t* value : {&member.size, &member.packed, &member.data}) {
      if (*value != kWider32) continue;
      if (wide.size() < 8) fail(member.name, "", "its ZIP64 field is missing or cut short");
      *value = Record(wide).u64(0);
      wide.remove_prefix(8);
    }
  }

  // Puts the members in the order of the file and finds where their bytes begin. A member's own
  // header has a name and an extra field whose length the directory does not tell; its sizes may
  // be 0 or in a ZIP64 field, and are not needed.
  void check_layout(std::vector<ZipMember>& members, std::uint64_t directory_start) const {
    std::stable_sort(members.begin(), members.end(),
                     [](const ZipMember& a, const ZipMember& b) { return a.data < b.data; });
    std::uint64_t covered = 0;
    for (ZipMember& member : members) {
      const std::uint64_t start = member.data;
      const auto refuse = [&](std::string_view rule) {
        fail(member.name, std::to_string(member.packed) + " bytes at " + std::to_string(start),
             rule);
      };
      if (start < covered) refuse("it lies over another member");
      if (start > directory_start || directory_start - start < kLocalBytes) {
        refuse("it does not lie before the directory, at " + std::to_string(directory_start));
      }
      const std::string local_bytes = part(start, kLocalBytes);
      const Record local(local_bytes);
      if (local.u32(0) != kLocalSignature) refuse("there is no member there");
      const std::uint64_t header = kLocalBytes + local.u16(26) + local.u16(28);
      if (directory_start - start < header || directory_start - start - header < member.packed) {
        refuse("it does not lie before the directory, at " + std::to_string(directory_start));
      }
      if (local.u16(26) != member.name.size() ||
          part(start + kLocalBytes, local.u16(26)) != member.name ||
          local.u16(8) != member.method) {
        refuse("the directory and the member's own header do not agree");
      }
      member.data = start + header;
      covered = member.data + member.packed;
    }
  }

  void check_names(const std::vector<ZipMember>& members) const {
    std::map<std::string_view, int> count;
    for (const ZipMember& member : members) {
      if (++count[member.name] > 1) fail(member.name, "", "two members have this name");
    }
  }

  [[noreturn]] void fail(std::string_view field, std::string_view value,
                         std::string_view rule) const {
    throw InputError(file_.name(), field, value, rule);
  }

  const InputFile& file_;
};

}  // namespace

std::vector<ZipMember> read_zip_directory(const InputFile& file) {
  return DirectoryReader(file).read();
}

}  // namespace attnlab
