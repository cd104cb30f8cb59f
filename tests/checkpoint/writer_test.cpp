#include "checkpoint/safetensors_writer.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "checkpoint/files.hpp"

namespace gatefold::checkpoint::test {
namespace {

const std::vector<std::byte> four_bytes(4, std::byte{42});

TEST(Writer, RoundTrip) {
  const TemporaryFolder folder;
  const std::vector<OwnedTensor> tensors{{"half", GATEFOLD_DTYPE_FP16, {3}, 1},
                                         {"single", GATEFOLD_DTYPE_FP32, {2, 5}, 2},
                                         {"empty", GATEFOLD_DTYPE_BF16, {0, 4}},
                                         {"brain", GATEFOLD_DTYPE_BF16, {7, 1}, 3}};
  const Metadata metadata{{"made by", "a \"test\"\n"}};
  std::vector<Tensor> views;
  for (const OwnedTensor& tensor : tensors) views.push_back(tensor.view());
  write_safetensors(folder / "f", views, metadata);
  const SafetensorsFile file(folder / "f");
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const OwnedTensor& tensor : tensors) {
    const Tensor& again = file.at(tensor.name);
    EXPECT_EQ(again.type, element_type(tensor.dtype));
    EXPECT_EQ(again.shape, tensor.shape);
    EXPECT_TRUE(again.aligned());
    EXPECT_TRUE(std::ranges::equal(again.range(), tensor.memory));
  }
  EXPECT_EQ(static_cast<unsigned char>(read_file(folder / "f")[0]) % 8, 0) << "the header is padded to 8 bytes";
}

TEST(Writer, ReplacesAFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  write_tensors(folder / "f", {{"x", GATEFOLD_DTYPE_FP32, {1}, 5}});
  EXPECT_EQ(SafetensorsFile(folder / "f").at("x").data[0], std::byte{5});
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"f"}));
}

TEST(Writer, WithoutCommitNothingChanges) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  {
    SafetensorsWriter writer(folder / "f", {{"x", {"U8", 8}, {8}}}, {});
    writer.append(four_bytes);
    EXPECT_EQ(read_file(folder / "f"), "old") << "there before it is whole";
    EXPECT_THROW(writer.commit(), std::logic_error);
  }
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"f"}));
}

TEST(Writer, StreamsPieces) {
  const TemporaryFolder folder;
  SafetensorsWriter writer(folder / "f", {{"x", {"U8", 8}, {6}}, {"y", {"U8", 8}, {2}}}, {});
  EXPECT_EQ(writer.data_bytes(), 8U);
  writer.append(four_bytes);
  writer.append(four_bytes);
  writer.commit();
  EXPECT_EQ(SafetensorsFile(folder / "f").at("y").bytes, 2U);
}

TEST(Writer, ReplacesTheTargetOfALink) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  std::filesystem::create_symlink("f", folder / "link");
  std::filesystem::create_symlink(folder / "link", folder / "link of a link");
  std::filesystem::create_symlink("new", folder / "dangling");
  for (const char* name : {"link of a link", "dangling"}) {
    write_tensors(folder / name, {{"x", GATEFOLD_DTYPE_FP32, {1}, 5}});
    EXPECT_TRUE(std::filesystem::is_symlink(folder / name));
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  for (const char* name : {"f", "new"}) {
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name)));
    EXPECT_EQ(SafetensorsFile(folder / name).at("x").data[0], std::byte{5});
  }
  std::filesystem::create_symlink("circle", folder / "circle");
  expect_input_error([&] { write_tensors(folder / "circle", {}); }, {"circle", "symbolic links"});
}

TEST(Writer, WritesToWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder / "link");
  std::string read;
  std::thread reader([&] { read = read_file(folder / "pipe"); });
  write_tensors(folder / "link", {{"x", GATEFOLD_DTYPE_FP32, {1}, 5}});
  reader.join();
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "pipe"));
  write_tensors(folder / "f", {{"x", GATEFOLD_DTYPE_FP32, {1}, 5}});
  EXPECT_EQ(read, read_file(folder / "f"));
}

// A full disk, as a limit on the size of files shows it.
TEST(Writer, AFailedWriteNamesTheFileAndCleansUp) {
  const TemporaryFolder folder;
  write_file(folder / "f", "old");
  const OwnedTensor tensor("x", GATEFOLD_DTYPE_FP32, {4096});
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{4096, limit.rlim_max};
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_input_error([&] { write_safetensors(folder / "f", {tensor.view()}); }, {"f: cannot write", "File too large"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"f"}));
}

TEST(Writer, RefusesBadTargetsAndNames) {
  const TemporaryFolder folder;
  const OwnedTensor x("x", GATEFOLD_DTYPE_FP32, {1});
  expect_input_error([&] { write_safetensors(folder / "no/f", {x.view()}); }, {"no/f", "No such file"});
  std::filesystem::create_directory(folder / "taken");
  expect_input_error([&] { write_safetensors(folder / "taken", {x.view()}); }, {"taken", "is a folder"});
  expect_input_error([&] { write_safetensors(folder / "f", {x.view(), x.view()}); }, {"f", "\"x\""});
  const OwnedTensor reserved("__metadata__", GATEFOLD_DTYPE_FP32, {1});
  expect_input_error([&] { write_safetensors(folder / "f", {reserved.view()}); }, {"f", "__metadata__"});
  const OwnedTensor latin("\xff", GATEFOLD_DTYPE_FP32, {1});
  expect_input_error([&] { write_safetensors(folder / "f", {latin.view()}); }, {"f", "UTF-8"});
  expect_input_error([&] { SafetensorsWriter(folder / "f", {{"x", {"F64", 64}, {1LL << 62}}}, {}); },
                     {"tensor x", "overflows"});
  expect_input_error([&] { make_tensor("x", GATEFOLD_DTYPE_FP32, {-1}, nullptr); }, {"tensor x", "[-1]"});
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"taken"}));
}

TEST(Writer, NewFilesFollowTheUmask) {
  const TemporaryFolder folder;
  const mode_t previous = ::umask(027);
  write_tensors(folder / "f", {{"x", GATEFOLD_DTYPE_FP32, {1}}});
  ::umask(previous);
  struct stat status {};
  ASSERT_EQ(::stat((folder / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

}  // namespace
}  // namespace gatefold::checkpoint::test
