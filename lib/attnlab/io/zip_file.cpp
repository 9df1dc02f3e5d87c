#include "attnlab/io/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <utility>

#include "attnlab/core/error.h"
#include "attnlab/core/memory.h"
#include "attnlab/io/zip_directory.h"

namespace attnlab {
namespace {

constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;
// The data, by either method, or the directory.
constexpr std::uint16_t kEncrypted = 1 | 1 << 6 | 1 << 13;
// A match of 258 bytes takes two bits at least.
constexpr std::uint64_t kMostInflation = 1032;
constexpr std::size_t kChunk = std::size_t{1} << 17;

void check_readable(const ZipMember& member, const std::string& name) {
  const auto refuse = [&](const std::string& value, const std::string& rule) {
    throw InputError(name, "", value, rule);
  };
  if ((member.flags & kEncrypted) != 0) refuse("", "is encrypted, which is not read");
  if (member.method != kStored && member.method != kDeflated) {
    refuse("", "is packed by method " + std::to_string(member.method) +
                   ", need 0 (stored) or 8 (deflated)");
  }
  if (member.method == kStored && member.size != member.packed) {
    refuse(std::to_string(member.size) + " bytes",
           "it is stored in " + std::to_string(member.packed));
  }
  if (member.method == kDeflated && member.size / kMostInflation > member.packed) {
    refuse(std::to_string(member.size) + " bytes",
           "its " + std::to_string(member.packed) + " packed bytes cannot inflate to them");
  }
}

void check_crc(const ZipMember& member, const std::string& name, uLong crc) {
  if (crc != member.crc) throw InputError(name, "", "", "is damaged: its checksum (CRC-32) is off");
}

// Inflates the packed bytes of a member, from its start on.
class Inflater {
 public:
  Inflater(const InputFile& file, const ZipMember& member, const std::string& name)
      : file_(file), name_(name), next_(member.data), left_(member.packed) {
    // Negative: deflate alone, without a header of its own.
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  Inflater(Inflater&&) = delete;
  Inflater& operator=(Inflater&&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // The next bytes, `count` unless there are no more. Throws InputError when they are damaged.
  std::size_t read(char* to, std::size_t count) {
    std::size_t made = 0;
    while (made < count && !ended_) {
      if (stream_.avail_in == 0) refill();
      stream_.next_out = reinterpret_cast<unsigned char*>(to + made);
      const auto room = static_cast<uInt>(std::min(count - made, kMostAtOnce));
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      made += room - stream_.avail_out;
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      // Without bytes to go on with there is no progress, which is an error as well.
      if (status != Z_OK && status != Z_STREAM_END) damaged("it does not inflate");
      ended_ = status == Z_STREAM_END;
    }
    return made;
  }

  // Throws InputError unless this is the end of the stream and of the packed bytes.
  void require_end() {
    char beyond = 0;
    if (read(&beyond, 1) > 0) damaged("it inflates to more bytes than it says");
    if (stream_.avail_in > 0 || left_ > 0) damaged("bytes are left behind its end");
  }

  [[noreturn]] void damaged(const std::string& how) const {
    throw InputError(name_, "", "", "is damaged: " + how);
  }

 private:
  void refill() {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(packed_.size(), left_));
    file_.read(next_, packed_.data(), count);
    next_ += count;
    left_ -= count;
    stream_.next_in = packed_.data();
    stream_.avail_in = static_cast<uInt>(count);
  }

  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

  const InputFile& file_;
  const std::string& name_;
  std::uint64_t next_;
  std::uint64_t left_;
  std::vector<unsigned char> packed_ = std::vector<unsigned char>(kChunk);
  z_stream stream_ = {};
  bool ended_ = false;
};

// Fills `bytes` from the start of a member.
void inflate_into(std::string& bytes, Inflater& inflater) {
  const std::size_t made = inflater.read(bytes.data(), bytes.size());
  if (made < bytes.size()) {
    inflater.damaged("it inflates to " + std::to_string(made) + " bytes, not to " +
                     std::to_string(bytes.size()));
  }
}

uLong crc_of(const InputFile& file) {
  std::string bytes(std::min<std::uint64_t>(kChunk, file.size()), '\0');
  uLong crc = crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < file.size();) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), file.size() - at));
    file.read(at, bytes.data(), count);
    crc = crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), count);
    at += count;
  }
  return crc;
}

}  // namespace

ZipFile::ZipFile(InputFile file) : file_(std::move(file)), members_(read_zip_directory(file_)) {}

InputFile ZipFile::open(const ZipMember& member, const std::string& name) const {
  check_readable(member, name);
  if (member.method == kStored) {
    InputFile stored = file_.part(member.data, member.packed, name);
    check_crc(member, name, crc_of(stored));
    return stored;
  }
  // The bytes, and the tensor that is made of them.
  require_memory(2 * member.size, name);
  std::string bytes(static_cast<std::size_t>(member.size), '\0');
  Inflater inflater(file_, member, name);
  inflate_into(bytes, inflater);
  inflater.require_end();
  check_crc(member, name,
            crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size()));
  return InputFile::in_memory(std::move(bytes), name);
}

InputFile ZipFile::head(const ZipMember& member, const std::string& name,
                        std::uint64_t count) const {
  check_readable(member, name);
  count = std::min(count, member.size);
  if (member.method == kStored) return file_.part(member.data, count, name);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  Inflater inflater(file_, member, name);
  inflate_into(bytes, inflater);
  return InputFile::in_memory(std::move(bytes), name);
}

}  // namespace attnlab
