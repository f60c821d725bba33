// Upload and Download with fake destinations and sources: no engine, no worker.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/service/download.h"
#include "server/engine/service/region.h"
#include "server/engine/service/upload.h"
#include "server/engine/sharding/sharded_transfers.h"

namespace stride::engine {
namespace {

using ::testing::ElementsAre;

std::string FieldOf(const absl::Status& status) {
  google::rpc::BadRequest request;
  auto payload = status.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  if (!payload.has_value() || !request.ParseFromString(std::string(*payload))) return "(none)";
  return request.field_violations(0).field();
}

using Log = std::shared_ptr<std::vector<std::string>>;

// Records each call.
class FakeSink : public ByteSink {
 public:
  FakeSink(Log log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}
  absl::Status Write(std::string_view bytes) override {
    log_->push_back(name_ + "write " + std::string(bytes));
    return write;
  }
  absl::Status Finish() override {
    log_->push_back(absl::StrCat(name_, "finish"));
    return finish;
  }
  absl::Status write, finish;

 private:
  const Log log_;
  const std::string name_;
};

// Reads regions itself.
class RegionSink : public FakeSink {
 public:
  explicit RegionSink(Log log) : FakeSink(log, ""), log_(std::move(log)) {}
  absl::Status WriteShared(const Region&, int64_t offset, int64_t size) override {
    log_->push_back(absl::StrCat("share ", offset, " ", size));
    return absl::OkStatus();
  }

 private:
  const Log log_;
};

class FakeAccess : public WriteAccess {
 public:
  FakeAccess(Log log, std::string name) : log_(std::move(log)), name_(std::move(name)) {}
  ~FakeAccess() override { log_->push_back(absl::StrCat(name_, "end")); }
  absl::StatusOr<v1::Array> Complete() override {
    log_->push_back(absl::StrCat(name_, "complete"));
    if (!complete.ok()) return complete;
    v1::Array array;
    array.set_name(absl::StrCat(name_, "array"));
    return array;
  }
  void Keep(int64_t size) override { log_->push_back(absl::StrCat(name_, "keep ", size)); }
  absl::Status complete;

 private:
  const Log log_;
  const std::string name_;
};

std::shared_ptr<Region> MakeRegion(std::string_view content) {
  auto memory = store::SharedSegment::Create(4096);
  EXPECT_TRUE(memory.ok()) << memory.status();
  std::memcpy((*memory)->data(), content.data(), content.size());
  return std::make_shared<Region>(1, "regions/r", TenantId{"t"}, "s", *std::move(memory), nullptr);
}

class UploadTest : public ::testing::Test {
 protected:
  std::unique_ptr<Upload> Begin(int64_t size, std::shared_ptr<Region> region = nullptr,
                                const std::string& name = "") {
    auto sink = std::make_unique<FakeSink>(log_, name);
    auto access = std::make_unique<FakeAccess>(log_, name);
    sink_ = sink.get();
    access_ = access.get();
    return std::make_unique<Upload>(size, std::move(access), std::move(sink), std::move(region));
  }
  // The calls since the last one.
  std::vector<std::string> Calls() { return std::exchange(*log_, {}); }

  const Log log_ = std::make_shared<std::vector<std::string>>();
  FakeSink* sink_ = nullptr;
  FakeAccess* access_ = nullptr;
};

TEST_F(UploadTest, AccessCompletesAfterTheSinkHasFinished) {
  auto upload = Begin(6);
  ASSERT_TRUE(upload->Write("abcd").ok());
  EXPECT_EQ(upload->remaining(), 2);
  ASSERT_TRUE(upload->Write("ef").ok());
  auto array = upload->Finish();
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->name(), "array");
  upload.reset();
  EXPECT_THAT(Calls(), ElementsAre("write abcd", "write ef", "finish", "complete", "end"));
}

TEST_F(UploadTest, WriteBeyondTheRangeIsRefused) {
  auto upload = Begin(3);
  ASSERT_TRUE(upload->Write("ab").ok());
  absl::Status status = upload->Write("cd");
  EXPECT_EQ(ReasonOf(status), v1::ERROR_REASON_SIZE_MISMATCH);
  EXPECT_EQ(FieldOf(status), "data");
  EXPECT_EQ(upload->remaining(), 1);
  EXPECT_THAT(Calls(), ElementsAre("write ab"));
}

TEST_F(UploadTest, IncompleteUploadKeepsItsBytes) {
  auto upload = Begin(3);
  ASSERT_TRUE(upload->Write("ab").ok());
  EXPECT_EQ(ReasonOf(upload->Finish().status()), v1::ERROR_REASON_SIZE_MISMATCH);
  upload.reset();
  EXPECT_THAT(Calls(), ElementsAre("write ab", "finish", "keep 2", "end"));
}

TEST_F(UploadTest, BytesThatDidNotArriveAreNotKept) {
  auto upload = Begin(3);
  sink_->finish = absl::UnavailableError("lost");
  ASSERT_TRUE(upload->Write("abc").ok());
  EXPECT_TRUE(absl::IsUnavailable(upload->Finish().status()));
  upload.reset();
  EXPECT_THAT(Calls(), ElementsAre("write abc", "finish", "finish", "end"));
}

TEST_F(UploadTest, RefusedWriteDoesNotCount) {
  auto upload = Begin(3);
  sink_->write = absl::UnavailableError("lost");
  EXPECT_TRUE(absl::IsUnavailable(upload->Write("abc")));
  EXPECT_EQ(upload->remaining(), 3);
  upload.reset();
  EXPECT_THAT(Calls(), ElementsAre("write abc", "finish", "keep 0", "end"));
}

TEST_F(UploadTest, FailedCompletionFinishesTheSinkOnce) {
  auto upload = Begin(1);
  access_->complete = absl::CancelledError("deleted");
  ASSERT_TRUE(upload->Write("a").ok());
  EXPECT_TRUE(absl::IsCancelled(upload->Finish().status()));
  upload.reset();
  EXPECT_THAT(Calls(), ElementsAre("write a", "finish", "complete", "keep 1", "end"));
}

TEST_F(UploadTest, RegionIsCopiedThroughWrite) {
  auto upload = Begin(5, MakeRegion("..abcde"));
  ASSERT_TRUE(upload->WriteShared(2, 3).ok());
  ASSERT_TRUE(upload->WriteShared(5, 2).ok());
  ASSERT_TRUE(upload->Finish().ok());
  EXPECT_THAT(Calls(), ElementsAre("write abc", "write de", "finish", "complete"));
}

TEST_F(UploadTest, SinkMayReadTheRegionItself) {
  Upload upload(5, std::make_unique<FakeAccess>(log_, ""), std::make_unique<RegionSink>(log_),
                MakeRegion(""));
  ASSERT_TRUE(upload.WriteShared(2, 5).ok());
  EXPECT_THAT(Calls(), ElementsAre("share 2 5"));
}

TEST_F(UploadTest, ChunkOutsideTheRegionIsRefused) {
  EXPECT_EQ(FieldOf(Begin(5)->WriteShared(0, 1)), "chunk") << "a call without a region";
  auto upload = Begin(5000, MakeRegion(""));
  Calls();
  EXPECT_EQ(FieldOf(upload->WriteShared(4096, 1)), "chunk");
  EXPECT_EQ(FieldOf(upload->WriteShared(-1, 1)), "chunk");
  EXPECT_EQ(FieldOf(upload->WriteShared(0, -1)), "chunk");
  ASSERT_TRUE(upload->WriteShared(0, 4096).ok());
  EXPECT_EQ(ReasonOf(upload->WriteShared(0, 4096)), v1::ERROR_REASON_SIZE_MISMATCH);
  EXPECT_EQ(FieldOf(upload->Finish().status()), "chunk") << "bytes are missing";
  Calls();
}

// A 2 x 4 array of bytes, over two devices.
PartRanges Ranges(int axis, bool replicated, int64_t begin, int64_t end) {
  session::Shards shards;
  shards.axis = axis;
  shards.replicated = replicated;
  shards.devices = {0, 1};
  shards.parts = {nullptr, nullptr};
  return PartRanges(Contiguous(DType::kUInt8, {2, 4}), shards, begin, end);
}

TEST_F(UploadTest, ShardsTakeTheirRunsOfEachRow) {
  std::vector<std::unique_ptr<Upload>> parts;
  parts.push_back(Begin(3, nullptr, "0 "));
  parts.push_back(Begin(4, nullptr, "1 "));
  // The range begins at the second byte of the array.
  ShardSink sink(Ranges(/*axis=*/1, false, 1, 8), std::move(parts), 1);
  ASSERT_TRUE(sink.Write("bcdef").ok());
  ASSERT_TRUE(sink.Write("gh").ok());
  ASSERT_TRUE(sink.Finish().ok());
  EXPECT_THAT(Calls(), ElementsAre("0 write b", "1 write cd", "0 write ef", "1 write gh",
                                   "0 finish", "0 complete", "1 finish", "1 complete"));
}

TEST_F(UploadTest, ReplicasTakeAllBytes) {
  std::vector<std::unique_ptr<Upload>> parts;
  parts.push_back(Begin(8, nullptr, "0 "));
  parts.push_back(Begin(8, nullptr, "1 "));
  ShardSink sink(Ranges(0, /*replicated=*/true, 0, 8), std::move(parts), 0);
  ASSERT_TRUE(sink.Write("abc").ok());
  EXPECT_THAT(Calls(), ElementsAre("0 write abc", "1 write abc"));
}

TEST_F(UploadTest, PartsThatTakeNothingAreLeftOut) {
  std::vector<std::unique_ptr<Upload>> parts(2);
  parts[1] = Begin(4, nullptr, "1 ");
  ShardSink sink(Ranges(/*axis=*/0, false, 4, 8), std::move(parts), 4);
  ASSERT_TRUE(sink.Write("efgh").ok());
  ASSERT_TRUE(sink.Finish().ok());
  EXPECT_THAT(Calls(), ElementsAre("1 write efgh", "1 finish", "1 complete"));
}

// Bytes in memory. Await answers the errors of `waits` first.
class FakeSource : public ByteSource {
 public:
  explicit FakeSource(std::string bytes, std::vector<absl::Status> waits = {})
      : bytes_(std::move(bytes)),
        info_(Contiguous(DType::kUInt8, {static_cast<int64_t>(bytes_.size())})),
        waits_(std::move(waits)) {}
  const ArrayInfo& info() const override { return info_; }
  absl::Status Await(SteadyTime) override {
    position_ = 0;
    if (waits_.empty()) return absl::OkStatus();
    absl::Status status = waits_.front();
    waits_.erase(waits_.begin());
    return status;
  }
  absl::StatusOr<Chunk> Next(int64_t max_bytes) override {
    if (!next.ok()) return std::exchange(next, absl::OkStatus());
    // At most three bytes at a time, as from small staging slots.
    const std::string_view bytes =
        std::string_view(bytes_).substr(position_, std::min<int64_t>(max_bytes, 3));
    position_ += bytes.size();
    return Chunk{bytes, nullptr};
  }
  absl::Status next;

 private:
  const std::string bytes_;
  const ArrayInfo info_;
  std::vector<absl::Status> waits_;
  size_t position_ = 0;
};

std::vector<std::string> Chunks(Download& download, int64_t max_bytes) {
  std::vector<std::string> chunks;
  for (;;) {
    auto chunk = download.Next(max_bytes);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    if (!chunk.ok() || chunk->bytes.empty()) return chunks;
    chunks.emplace_back(chunk->bytes);
  }
}

const SteadyTime kEver = SteadyTime::InfiniteFuture();

TEST(DownloadTest, ChunksAreBoundedByTheCallerAndTheSource) {
  Download download(7, std::make_unique<FakeSource>("abcdefg"));
  ASSERT_TRUE(download.Await(kEver).ok());
  EXPECT_THAT(Chunks(download, 2), ElementsAre("ab", "cd", "ef", "g"));
  ASSERT_TRUE(download.Await(kEver).ok());
  EXPECT_THAT(Chunks(download, 100), ElementsAre("abc", "def", "g")) << "from the start again";
}

TEST(DownloadTest, ReadWaitsForTheArray) {
  Download download(5, std::make_unique<FakeSource>(
                           "abcde", std::vector<absl::Status>{absl::DeadlineExceededError("")}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(download.Read(kEver).status()));
  auto array = download.Read(kEver);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->data(), "abcde");
  EXPECT_EQ(array->spec().data_type(), v1::DATA_TYPE_UINT8);
  EXPECT_THAT(array->spec().shape(), ElementsAre(5));
}

TEST(DownloadTest, ReadThatFailedMidwayStartsAgain) {
  auto source = std::make_unique<FakeSource>("abcde");
  FakeSource* fake = source.get();
  Download download(5, std::move(source));
  ASSERT_TRUE(download.Await(kEver).ok());
  ASSERT_EQ(download.Next(3)->bytes, "abc");
  fake->next = absl::DeadlineExceededError("staging memory");
  EXPECT_TRUE(absl::IsDeadlineExceeded(download.Next(3).status()));
  EXPECT_EQ(download.Read(kEver)->data(), "abcde");
}

TEST(DownloadTest, ReadOfAnArrayWithoutBytesIsEmpty) {
  EXPECT_EQ(Download(0, std::make_unique<FakeSource>("")).Read(kEver)->data(), "");
}

TEST(DownloadTest, RegionReceivesCopiesOfTheChunks) {
  auto region = MakeRegion(".........");
  Download download(5, std::make_unique<FakeSource>("abcde"), region, /*region_offset=*/2);
  ASSERT_TRUE(download.Await(kEver).ok());
  std::vector<std::pair<int64_t, int64_t>> chunks;
  for (;;) {
    auto chunk = download.NextShared(4);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    chunks.emplace_back(chunk->offset, chunk->size);
    if (chunk->size == 0) break;
  }
  EXPECT_THAT(chunks, ElementsAre(std::pair(2, 3), std::pair(5, 2), std::pair(7, 0)));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(region->data()), 9), "..abcde..");
}

TEST(DownloadTest, RegionIsNeverWrittenBeyondItsEnd) {
  Download without(1, std::make_unique<FakeSource>("a"));
  EXPECT_TRUE(absl::IsInternal(without.NextShared(1).status()));
  Download beyond(2, std::make_unique<FakeSource>("ab"), MakeRegion(""), 4095);
  EXPECT_TRUE(absl::IsInternal(beyond.NextShared(2).status()));
}

std::unique_ptr<ShardSource> Columns(std::vector<std::unique_ptr<ByteSource>> parts,
                                     absl::Status status = {}) {
  return std::make_unique<ShardSource>(Contiguous(DType::kUInt8, {2, 4}),
                                       Ranges(/*axis=*/1, false, 0, 8), std::move(parts),
                                       Bytes{0, 8}, [status] { return status; });
}

std::vector<std::unique_ptr<ByteSource>> Halves(std::vector<absl::Status> waits = {}) {
  std::vector<std::unique_ptr<ByteSource>> parts;
  parts.push_back(std::make_unique<FakeSource>("abef"));
  parts.push_back(std::make_unique<FakeSource>("cdgh", std::move(waits)));
  return parts;
}

TEST(ShardSourceTest, ShortRunsAreGatheredInTheOrderOfTheWhole) {
  Download download(8, Columns(Halves()));
  ASSERT_TRUE(download.Await(kEver).ok());
  EXPECT_THAT(Chunks(download, 5), ElementsAre("abcde", "fgh"));
  auto array = download.Read(kEver);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->data(), "abcdefgh");
  EXPECT_THAT(array->spec().shape(), ElementsAre(2, 4));
}

TEST(ShardSourceTest, EachPartAndTheWholeMustBeReady) {
  const absl::Status late = absl::DeadlineExceededError("");
  Download download(8, Columns(Halves({late})));
  EXPECT_EQ(download.Await(kEver), late);
  EXPECT_EQ(download.Read(kEver)->data(), "abcdefgh");
  const absl::Status failed = absl::DataLossError("the whole");
  EXPECT_EQ(Columns(Halves(), failed)->Await(kEver), failed);
}

TEST(ShardSourceTest, LongRunsAreNotCopied) {
  const std::string half(128 << 10, 'x');
  session::Shards shards;
  shards.devices = {0, 1};
  shards.parts = {nullptr, nullptr};
  const SharedInfo whole = Contiguous(DType::kUInt8, {256 << 10});
  std::vector<std::unique_ptr<ByteSource>> parts;
  for (int i = 0; i < 2; ++i) parts.push_back(std::make_unique<FakeSource>(half));
  ShardSource source(whole, PartRanges(whole, shards, 0, 256 << 10), std::move(parts),
                     Bytes{0, 256 << 10}, [] { return absl::OkStatus(); });
  ASSERT_TRUE(source.Await(kEver).ok());
  EXPECT_EQ(source.Next(100)->bytes.size(), 3) << "as the part's source returns them";
}

}  // namespace
}  // namespace stride::engine
