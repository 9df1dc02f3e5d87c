#include "attnlab/io/npz.h"

#include "attnlab/io/npy_header.h"
#include "attnlab/io/raw_tensor.h"
#include "catch.h"
#include "files.h"
#include "samples.h"
#include "zip_writer.h"

namespace attnlab {
namespace {

using namespace test;

std::string npy_of(const AnyTensor& tensor) {
  return npy_preamble(tensor.dtype(), tensor.shape()) + std::string(raw_bytes(tensor));
}

std::string one_to_six() {
  Tensor<float> tensor({2, 3});
  for (Index i = 0; i < 6; ++i) tensor[i] = static_cast<float>(i + 1);
  return npy_of(tensor);
}

AnyTensor read_bytes(const std::string& zip, const std::string& name = "a") {
  std::vector<std::string> notes;
  return read_tensor(InputFile::in_memory(zip, "x.npz"), name, TensorFormat::npz, notes);
}

std::string bytes_error(const std::string& zip, const std::string& name = "a") {
  return error_of([&] { read_bytes(zip, name); });
}

std::string part_error(ZipPart part) {
  part.name = "a.npy";
  if (part.bytes.empty()) part.bytes = one_to_six();
  return bytes_error(zip_of({part}));
}

const std::vector<double> kOneToSix = {1, 2, 3, 4, 5, 6};

TEST_CASE("arrays that NumPy stored or deflated are read by their names") {
  CHECK(values(read(fixture("two.npz") + ":q")) == values(read(fixture("two.npz") + ":q.npy")));
  CHECK(read(fixture("two.npz") + ":k").shape() == Shape{2, 3});
  const std::string deflated = fixture("deflated.npz");
  CHECK(read(deflated + ":layer/q").dtype() == DType::float32);
  CHECK(values(read(deflated + ":layer/q")) == kOneToSix);
  CHECK(read(deflated + ":k").shape() == Shape{3, 2});
  CHECK(values(read(deflated + ":k")) == std::vector<double>{3, 6, 2, 5, 1, 4});
  CHECK(values(read(deflated + ":flag")) == std::vector<double>{1, 0});
  CHECK(contains(read_error(deflated + ":format"), "deflated.npz:format: descr: got |S3, texts"));
}

TEST_CASE("an array of an npz file may go without a name when it is the only one") {
  CHECK(values(read_bytes(zip_of({{"a.npy", one_to_six()}}), "")) == kOneToSix);
  CHECK(contains(read_error(fixture("two.npz")), "add :NAME for one of its tensors: q, k"));
  CHECK(contains(read_error(fixture("two.npz") + ":qq"),
                 "got qq, need one of its tensors: q, k, did you mean q?"));
  const std::string with_other = zip_of({{"readme.txt", "hello"}, {"a.npy", one_to_six()}});
  CHECK(values(read_bytes(with_other, "")) == kOneToSix);
  CHECK(NpzFile(InputFile::in_memory(with_other, "x")).others() ==
        std::vector<std::string>{"readme.txt"});
  CHECK(contains(bytes_error(zip_of({}), ""), "for one of its tensors: none"));
}

TEST_CASE("the fields of ZIP64 are read where the others are too narrow") {
  for (const bool deflated : {false, true}) {
    const ZipPart first = {.name = "first.npy", .bytes = one_to_six(), .deflated = deflated};
    const ZipPart second = {
        .name = "a.npy", .bytes = one_to_six(), .deflated = deflated, .wide = true};
    for (const bool wide : {false, true}) {
      const ZipEnd end = {.wide = wide, .comment = "PK\x05\x06 a comment"};
      CHECK(values(read_bytes(zip_of({first, second}, end))) == kOneToSix);
    }
  }
  std::string cut = zip_of({{.name = "a.npy", .bytes = one_to_six(), .wide = true}});
  cut.replace(cut.rfind(le(1, 2) + le(24, 2)), 2, le(2, 2));
  CHECK(contains(bytes_error(cut), "x.npz: a.npy: its ZIP64 field is missing"));
  std::string moved = zip_of({{"a.npy", one_to_six()}}, {.wide = true});
  moved.replace(moved.rfind(le(0x07064b50, 4)) + 8, 8, le(moved.size(), 8));
  CHECK(contains(bytes_error(moved), "it does not lie before the end"));
}

TEST_CASE("big floats that are stored on a word are the file, others a copy of it") {
  const TemporaryFolder folder;
  const Tensor<float> tensor({3, 43, 2111}, 1.0F);
  for (std::size_t letters = 1; letters <= 8; ++letters) {
    for (const bool deflated : {false, true}) {
      const std::string name(letters, 'n');
      const std::string path = folder.file(
          "x.npz",
          zip_of({{.name = name + ".npy", .bytes = npy_of(tensor), .deflated = deflated}}));
      const AnyTensor got = read(path + ":" + name);
      CHECK(identical(got, tensor));
      // The data follows 30 bytes of header, the name and the preamble.
      const bool on_a_word = !deflated && (30 + letters + 4) % sizeof(float) == 0;
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(34 + letters + npy_of(tensor).size() - 4));
      file << "wxyz" << std::flush;
      CHECK((got.at(got.size() - 1) != tensor[tensor.size() - 1]) == on_a_word);
    }
  }
}

TEST_CASE("an npz file is refused wherever it is cut short") {
  for (const bool wide : {false, true}) {
    const std::string whole = zip_of({{.name = "a.npy", .bytes = one_to_six(), .wide = wide},
                                      {.name = "b.npy", .bytes = "x", .deflated = true}},
                                     {.wide = wide});
    REQUIRE(values(read_bytes(whole)) == kOneToSix);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO(size);
      REQUIRE(contains(bytes_error(whole.substr(0, size)), "x.npz: "));
    }
  }
  CHECK(contains(bytes_error(""), "is not a .npz file, or cut short"));
}

TEST_CASE("a member of an npz file that is not what its directory says is refused by its name") {
  CHECK(contains(part_error({.flags = 1}), "x.npz:a: is encrypted"));
  CHECK(contains(part_error({.flags = 1 << 6}), "x.npz:a: is encrypted"));
  CHECK(contains(part_error({.crc_error = 1}), "x.npz:a: is damaged: its checksum"));
  CHECK(contains(part_error({.deflated = true, .crc_error = 1}), "damaged: its checksum"));
  CHECK(contains(part_error({.more_size = 4}), "x.npz:a: got 156 bytes, it is stored in 152"));
  CHECK(contains(part_error({.bytes = one_to_six() + "more"}),
                 "x.npz:a: got 156 bytes, its header needs 152"));
  CHECK(contains(part_error({.bytes = one_to_six().substr(0, 140), .deflated = true}),
                 "got 140 bytes, its header needs 152"));
  CHECK(contains(part_error({.bytes = "no array"}), "x.npz:a: is not a .npy file"));
  std::string method = zip_of({{"a.npy", one_to_six()}});
  for (const std::size_t at : {method.find("PK\x03\x04") + 8, method.find("PK\x01\x02") + 10}) {
    method[at] = 12;
  }
  CHECK(contains(bytes_error(method), "x.npz:a: is packed by method 12, need 0"));
}

TEST_CASE("a member that inflates to another number of bytes is refused, however many") {
  const std::string packed = deflate_bytes(one_to_six());
  const auto inflated = [&](const std::string& bytes, std::uint64_t more_size) {
    return part_error({.deflated = true, .more_size = more_size, .packed = bytes});
  };
  CHECK(inflated(packed, 0).empty());
  CHECK(contains(inflated(packed + "x", 0), "damaged: bytes are left behind its end"));
  CHECK(contains(inflated(packed.substr(0, packed.size() - 3), 0), "damaged: it does not inflate"));
  CHECK(contains(inflated(deflate_bytes(one_to_six().substr(0, 150)), 0),
                 "damaged: it inflates to 150 bytes, not to 152"));
  CHECK(contains(inflated(deflate_bytes(one_to_six() + std::string(1 << 20, '\0')), 0),
                 "damaged: it inflates to more bytes than it says"));
  // Declared, but more than deflate can make of so few bytes: nothing is allocated.
  const std::string header = npy_preamble(DType::float32, {1 << 20, 1 << 20});
  const ZipPart bomb = {.name = "a.npy",
                        .bytes = header,
                        .deflated = true,
                        .wide = true,
                        .more_size = std::uint64_t{1} << 42};
  CHECK(contains(bytes_error(zip_of({bomb})), "packed bytes cannot inflate to them"));
  // Declared and possible, but not what its own header needs.
  ZipPart zeros = {.bytes = one_to_six() + std::string(1 << 20, '\0'), .deflated = true};
  CHECK(contains(part_error(zeros), "got 1048728 bytes, its header needs 152"));
}

TEST_CASE("an npz file whose members lie over each other or carry one name is refused") {
  const ZipPart a = {"a.npy", one_to_six()};
  const ZipPart b = {"b.npy", one_to_six()};
  CHECK(contains(bytes_error(zip_of({a, a})), "x.npz: a.npy: two members have this name"));
  const std::string whole = zip_of({a, b});
  const auto with = [&](std::size_t entry, std::size_t at, std::uint32_t value) {
    std::string bytes = whole;
    std::size_t place = bytes.find("PK\x01\x02");
    if (entry > 0) place = bytes.find("PK\x01\x02", place + 1);
    return bytes.replace(place + at, 4, le(value, 4));
  };
  CHECK(contains(bytes_error(with(1, 42, 0)), "b.npy: got 152 bytes at 0, it lies over another"));
  CHECK(contains(bytes_error(with(0, 20, 160)), "b.npy: got 152 bytes at 187, it lies over"));
  CHECK(contains(bytes_error(with(1, 20, 1000)), "it does not lie before the directory"));
  CHECK(contains(bytes_error(with(1, 42, 100)), "b.npy: got 152 bytes at 100, it lies over"));
  CHECK(contains(bytes_error(with(0, 42, 1)), "a.npy: got 152 bytes at 1, there is no member"));
  std::string renamed = whole;
  renamed[whole.find("a.npy")] = 'c';
  CHECK(contains(bytes_error(renamed), "the member's own header do not agree"));
}

TEST_CASE("a directory of an npz file that does not lie at its end is refused") {
  const ZipPart a = {"a.npy", one_to_six()};
  CHECK(contains(bytes_error(zip_of({a}, {.more_entries = 1})), "got 2 entries, its 51 bytes"));
  const ZipPart b = {std::string(60, 'b'), "x"};
  CHECK(
      contains(bytes_error(zip_of({a, b}, {.more_entries = 1})), "got 2 entries, its end says 3"));
  CHECK(contains(bytes_error(zip_of({a}, {.more_start = 1})), "it must end where its end record"));
  CHECK(contains(bytes_error(zip_of({a}, {.wide = true, .more_entries = std::uint64_t{1} << 60})),
                 "bytes cannot hold them"));
  std::string split = zip_of({a});
  split[split.size() - 18] = 1;
  CHECK(contains(bytes_error(split), "is one piece of a split zip file"));
}

TEST_CASE("the header of an array in an npz file tells what it holds") {
  const NpzFile file(InputFile(fixture("deflated.npz"), "file"));
  CHECK(file.names() == std::vector<std::string>{"layer/q", "k", "flag", "format"});
  const TensorInfo info = file.info("layer/q");
  CHECK(info.dtype == "float32");
  CHECK(info.shape == std::vector<Index>{2, 3});
  CHECK(info.bytes == 24);
}

}  // namespace
}  // namespace attnlab
