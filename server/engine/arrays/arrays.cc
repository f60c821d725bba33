#include "server/engine/arrays/arrays.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/sharding/sharded_transfers.h"
#include "server/engine/transfers/buffer_source.h"
#include "server/engine/transfers/write_access.h"

namespace stride::engine {

using session::ArrayPtr;

namespace {

// Most bytes to copy inside a transaction: about a microsecond.
constexpr int64_t kMostReadAtOnce = 16 << 10;
// Most ranges of one upload. Every description of the array lists them.
constexpr size_t kMaxUploadRanges = 10000;
constexpr char kNotBoth[] = "an array is on one device or spread over several; not with `sharding`";

// A sharded array, once the uploads of its parts are complete.
class WholeAccess : public WriteAccess {
 public:
  WholeAccess(Core* core, TenantId tenant, ArrayPtr array)
      : core_(core), tenant_(std::move(tenant)), array_(std::move(array)) {}
  absl::StatusOr<v1::Array> Complete() override {
    TenantTransaction transaction(*core_, tenant_);
    if (!array_->status().ok()) return array_->status();
    return Describe(*core_, *array_);
  }

 private:
  Core* const core_;
  const TenantId tenant_;
  const ArrayPtr array_;
};

// Destroys, after the transaction, accesses whose destructors begin one.
template <typename List>
void DropAfter(TenantTransaction& transaction, List list) {
  transaction.Defer([list = std::make_shared<List>(std::move(list))] {});
}

}  // namespace

absl::StatusOr<v1::Array> Arrays::Create(const TenantId& tenant,
                                         const v1::CreateArrayRequest& request) {
  auto name = session::MakeArrayName(request.parent(), request.array_id(), "parent", "array_id");
  if (!name.ok()) return name.status();
  auto info = CheckSpec(request.spec(), core_->options.max_array_bytes, "spec");
  if (!info.ok()) return info.status();
  auto expire = ExpireTime(request.has_ttl(), request.ttl(), !name->session.empty(), core_->Now());
  if (!expire.ok()) return expire.status();
  v1::Operation fill;
  *fill.mutable_creation()->mutable_fill()->mutable_spec() = request.spec();
  fill.set_device(request.device());
  if (request.has_sharding() && !request.device().empty())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device", kNotBoth);
  std::string session;
  if (!name->session.empty()) {
    session = request.parent();
    fill.add_outputs()->set_handle(name->handle);
  } else {
    fill.add_outputs()->set_name(name->ToString());
  }
  if (request.has_sharding()) *fill.mutable_outputs(0)->mutable_sharding() = request.sharding();
  auto accepted = operations_->Accept(tenant, session, fill, SteadyTime::InfiniteFuture());
  if (!accepted.ok()) return accepted.status();
  TenantTransaction transaction(*core_, tenant);
  accepted->outputs[0]->expire_time = *expire;
  core_->journal_writer->Changed(transaction, accepted->outputs[0]);
  if (core_->array_persister != nullptr)
    core_->array_persister->Changed(transaction, *accepted->outputs[0]);
  return Describe(*core_, *accepted->outputs[0]);
}

absl::StatusOr<v1::Array> Arrays::Get(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseArrayName(name, "name");
  if (!parsed.ok()) return parsed.status();
  TenantTransaction transaction(*core_, tenant);
  auto array = core_->catalogue.FindArray(transaction, tenant, *parsed, core_->Now());
  if (!array.ok()) return array.status();
  return Describe(*core_, **array);
}

absl::StatusOr<v1::ListArraysResponse> Arrays::List(const TenantId& tenant,
                                                    const v1::ListArraysRequest& request) {
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  v1::ListArraysResponse response;
  TenantTransaction transaction(*core_, tenant);
  auto found = core_->catalogue.ListArrays(transaction, tenant, request.parent(), *page_size,
                                           request.page_token(), core_->Now());
  if (!found.ok()) return found.status();
  // As they are at one moment, and so in the transaction: of its own tenants alone, no more than a
  // page has.
  WritePage(
      *found, *page_size,
      [this](const ArrayPtr& array, v1::Array* listed) { Describe(*core_, *array, listed); },
      response.mutable_arrays(), response.mutable_next_page_token());
  return response;
}

absl::Status Arrays::Delete(const TenantId& tenant, const std::string& name) {
  auto parsed = session::ParseArrayName(name, "name");
  if (!parsed.ok()) return parsed.status();
  uint64_t before = 0, after = 0;  // numbers of the store's latest change
  auto last = [&] {
    return core_->array_persister != nullptr ? core_->array_persister->last() : 0;
  };
  absl::Status status;
  auto remove = [&](TenantTransaction& transaction) {
    before = last();
    status = Remove(transaction, tenant, *parsed);
    after = last();
  };
  if (parsed->session.empty()) {
    GlobalTransaction transaction(*core_);
    remove(transaction);
  } else {
    TenantTransaction transaction(*core_, tenant);
    remove(transaction);
  }
  // Wait for the disk, so that the deletion survives a reboot.
  if (after != before) core_->array_persister->Await(after);
  return status;
}

absl::Status Arrays::Remove(TenantTransaction& transaction, const TenantId& tenant,
                            const session::ArrayName& name) {
  auto removed = core_->catalogue.RemoveArray(transaction, tenant, name, core_->Now());
  if (!removed.ok()) return removed.status();
  receivers_.Cancel(transaction, *removed);
  return absl::OkStatus();
}

absl::StatusOr<ArrayPtr> Arrays::EnqueueWrites(
    TenantTransaction& transaction, const TenantId& tenant, const session::ArrayName& name,
    const v1::PutArrayRequest::Header& header, const ArrayInfo& info, const Bytes& range,
    std::vector<std::unique_ptr<RangeAccess>>* accesses) {
  auto array = receivers_.FindOrMake(transaction, tenant, name, header, info);
  if (!array.ok()) return array;
  const bool receives = session::IsReceiving(**array);
  std::optional<PartRanges> ranges;
  if ((*array)->shards != nullptr)
    ranges.emplace((*array)->info, *(*array)->shards, range.begin, range.end);
  // All at once, so that two calls never wait for each other.
  for (const ArrayPtr& part : session::PartsOf(*array)) {
    const Bytes own = ranges ? ranges->ranges()[accesses->size()] : range;
    accesses->emplace_back();
    if (receives) {
      // The parts that this range leaves out have a call on them too, and keep their lease.
      if (part->receiving == nullptr) continue;
      const store::RangeSet& received = part->receiving->ranges;
      if (received.ranges().size() >= kMaxUploadRanges && received.IsApart(own.begin, own.end)) {
        return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "range",
                            absl::StrCat("the upload has too many ranges apart from each other; "
                                         "fill the gaps between them first. Limit: ",
                                         kMaxUploadRanges),
                            {{"limit", absl::StrCat(kMaxUploadRanges)}});
      }
      accesses->back() = std::make_unique<ReceiveAccess>(transaction, core_, scheduler_, part, own);
    } else if (own.begin < own.end || !ranges) {
      auto access = OverwriteAccess::Enqueue(transaction, core_, scheduler_, tenant, part, own);
      if (!access.ok()) return access.status();
      accesses->back() = *std::move(access);
    }
  }
  return array;
}

absl::StatusOr<std::unique_ptr<Upload>> Arrays::BeginUpload(
    const TenantId& tenant, const v1::PutArrayRequest::Header& header, SteadyTime deadline) {
  auto name = session::MakeArrayName(header.parent(), header.array_id(), "parent", "array_id");
  if (!name.ok()) return name.status();
  auto info = CheckSpec(header.spec(), core_->options.max_array_bytes, "spec");
  if (!info.ok()) return info.status();
  auto range = CheckRange(header.has_range() ? &header.range() : nullptr, info->size_bytes());
  if (!range.ok()) return range.status();
  std::shared_ptr<Region> region;
  if (!header.region().empty()) {
    auto found = regions_->Find(tenant, header.region(), name->session, "region");
    if (!found.ok()) return found.status();
    region = *std::move(found);
  }
  if (header.has_sharding() && !header.device().empty())
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "device", kNotBoth);
  absl::StatusOr<ArrayPtr> array = nullptr;
  std::vector<std::unique_ptr<RangeAccess>> accesses;
  {
    // A named array concerns more than its tenant; one that is spread, several devices.
    const bool plain = !name->session.empty() && !header.has_sharding();
    std::optional<TenantTransaction> of_tenant;
    std::optional<GlobalTransaction> of_all;
    TenantTransaction& transaction =
        plain ? of_tenant.emplace(*core_, tenant) : of_all.emplace(*core_);
    array = EnqueueWrites(transaction, tenant, *name, header, *info, *range, &accesses);
    if (!array.ok()) DropAfter(transaction, std::move(accesses));
  }
  if (!array.ok()) return array.status();
  for (const auto& access : accesses) {
    if (access == nullptr) continue;
    if (absl::Status status = access->Await(deadline); !status.ok()) return status;
  }
  if ((*array)->shards != nullptr)
    return OpenSharded(*array, *range, std::move(accesses), deadline, std::move(region));
  return OpenUpload(core_, scheduler_, std::move(accesses[0]), deadline, std::move(region));
}

absl::StatusOr<std::unique_ptr<Upload>> Arrays::OpenSharded(
    const ArrayPtr& array, const Bytes& range, std::vector<std::unique_ptr<RangeAccess>> accesses,
    SteadyTime deadline, std::shared_ptr<Region> region) {
  std::vector<std::unique_ptr<Upload>> parts;
  for (auto& access : accesses) {
    parts.emplace_back();
    if (access == nullptr) continue;
    auto part = OpenUpload(core_, scheduler_, std::move(access), deadline);
    if (!part.ok()) return part.status();
    parts.back() = *std::move(part);
  }
  PartRanges ranges(array->info, *array->shards, range.begin, range.end);
  return std::make_unique<Upload>(
      range.end - range.begin, std::make_unique<WholeAccess>(core_, array->tenant, array),
      std::make_unique<ShardSink>(std::move(ranges), std::move(parts), range.begin),
      std::move(region));
}

absl::StatusOr<std::unique_ptr<ByteSource>> Arrays::EnqueueRead(TenantTransaction& transaction,
                                                                const TenantId& tenant,
                                                                const ArrayPtr& array,
                                                                const Bytes& range, bool of_body) {
  auto read = [&](const ArrayPtr& part,
                  const Bytes& own) -> absl::StatusOr<std::unique_ptr<ByteSource>> {
    auto access =
        ReadAccess::Enqueue(transaction, core_, scheduler_, operations_, tenant, part, of_body);
    if (!access.ok()) return access.status();
    return std::make_unique<BufferSource>(core_, scheduler_, *std::move(access), own);
  };
  if (array->shards == nullptr) return read(array, range);
  PartRanges ranges(array->info, *array->shards, range.begin, range.end);
  std::vector<std::unique_ptr<ByteSource>> parts;
  for (const ArrayPtr& part : array->shards->parts) {
    const size_t i = parts.size();
    const Bytes& own = ranges.ranges()[i];
    parts.emplace_back();
    if (own.begin == own.end || (i > 0 && ranges.replicated())) continue;
    auto source = read(part, own);
    if (!source.ok()) {
      DropAfter(transaction, std::move(parts));
      return source.status();
    }
    parts.back() = *std::move(source);
  }
  auto status = [core = core_, tenant, array] {
    TenantTransaction transaction(*core, tenant);
    return array->status();
  };
  return std::make_unique<ShardSource>(array->info, std::move(ranges), std::move(parts), range,
                                       std::move(status));
}

absl::StatusOr<std::unique_ptr<Download>> Arrays::BeginDownload(
    const TenantId& tenant, const v1::FetchArrayRequest& request, SteadyTime deadline) {
  auto name = session::ParseArrayName(request.name(), "name");
  if (!name.ok()) return name.status();
  ArrayPtr array;
  {
    TenantTransaction transaction(*core_, tenant);
    auto found = core_->catalogue.FindArray(transaction, tenant, *name, core_->Now());
    if (!found.ok()) return found.status();
    array = *found;
    if (!array->status().ok()) return array->status();
  }
  auto range =
      CheckRange(request.has_range() ? &request.range() : nullptr, array->info->size_bytes());
  if (!range.ok()) return range.status();
  const int64_t size = range->end - range->begin;
  std::shared_ptr<Region> region;
  if (!request.region().empty()) {
    auto found = regions_->Find(tenant, request.region(), name->session, "region");
    if (!found.ok()) return found.status();
    region = *std::move(found);
    if (!region->Covers(request.region_offset(), size)) {
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, "region_offset",
          absl::StrCat("the bytes do not fit into the region from there. Region: ", region->size(),
                       ", offset: ", request.region_offset(), ", bytes: ", size));
    }
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> source = nullptr;
  {
    TenantTransaction transaction(*core_, tenant);
    source = EnqueueRead(transaction, tenant, array, *range);
  }
  if (!source.ok()) return source.status();
  auto download = std::make_unique<Download>(size, *std::move(source), std::move(region),
                                             request.region_offset());
  if (absl::Status status = download->Await(deadline); !status.ok()) return status;
  TenantTransaction transaction(*core_, tenant);
  download->set_array(Describe(*core_, *array));
  return download;
}

absl::StatusOr<std::unique_ptr<Download>> Arrays::BeginFetch(const TenantId& tenant,
                                                             const std::string& session,
                                                             uint64_t handle) {
  auto id = session::ParseSessionName(session, "session");
  if (!id.ok()) return id.status();
  const session::ArrayName name{.session = *id, .handle = handle};
  TenantTransaction transaction(*core_, tenant);
  auto array = core_->catalogue.FindArray(transaction, tenant, name, core_->Now());
  if (!array.ok()) return array.status();
  if (!(*array)->status().ok()) return (*array)->status();
  auto size = InlineSize(**array);
  if (!size.ok()) return size.status();
  auto source = EnqueueRead(transaction, tenant, *array, {0, *size});
  if (!source.ok()) return source.status();
  return std::make_unique<Download>(*size, *std::move(source));
}

absl::StatusOr<int64_t> Arrays::InlineSize(const session::Array& array) const {
  const bool there = array.buffer != nullptr || array.shards != nullptr;
  int64_t size = there ? array.info->size_bytes() : 0;
  if (size <= core_->options.max_inline_bytes) return size;
  return InvalidField(
      v1::ERROR_REASON_SIZE_LIMIT, "outputs",
      absl::StrCat("too large to travel inline; keep it under a handle and use FetchArray. Bytes: ",
                   size, ", limit: ", core_->options.max_inline_bytes));
}

std::optional<v1::InlineArray> Arrays::ReadAtOnce(TenantTransaction& transaction,
                                                  const TenantId& tenant,
                                                  const session::Array& array) {
  if (array.shards != nullptr || array.buffer == nullptr || !array.status().ok() ||
      array.receiving != nullptr || array.buffer->writer != nullptr || array.buffer->loading ||
      array.buffer->pin_count > 0 ||
      scheduler_->memory().copies().IsCopied(transaction, *array.buffer) ||
      !array.info->IsContiguous()) {
    return std::nullopt;
  }
  const int64_t size = array.info->size_bytes();
  if (size > std::min<int64_t>(kMostReadAtOnce, core_->options.max_inline_bytes))
    return std::nullopt;
  for (const auto& [place, replica] : array.buffer->replicas) {
    if (!core_->IsDevice(place) || !replica.mapped()) continue;
    v1::InlineArray out = EmptyInline(array.info);
    const char* bytes = reinterpret_cast<const char*>(replica.data()) + array.info->offset;
    out.mutable_data()->assign(bytes, size);
    core_->device_accounts[place].download_bytes += size;
    core_->accounts->AddDownload(tenant, size);
    return out;
  }
  return std::nullopt;
}

absl::StatusOr<v1::InlineArray> Arrays::ReadNow(const TenantId& tenant, const ArrayPtr& array,
                                                int64_t size, SteadyTime deadline, bool of_body) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = nullptr;
  {
    TenantTransaction transaction(*core_, tenant);
    source = EnqueueRead(transaction, tenant, array, {0, size}, of_body);
  }
  if (!source.ok()) return source.status();
  return Download(size, *std::move(source)).Read(deadline);
}

absl::StatusOr<v1::InlineArray> Arrays::ReadForBody(const TenantId& tenant, ArrayPtr array) {
  return ReadNow(tenant, array, array->info->size_bytes(), SteadyTime::InfiniteFuture(),
                 /*of_body=*/true);
}

absl::StatusOr<v1::InlineArray> Arrays::ReadInline(const TenantId& tenant, ArrayPtr array,
                                                   SteadyTime deadline) {
  auto size = InlineSize(*array);
  if (!size.ok()) return size.status();
  auto out = ReadNow(tenant, array, *size, deadline, /*of_body=*/false);
  if (out.ok()) core_->accounts->AddDownload(tenant, *size);
  return out;
}

}  // namespace stride::engine
