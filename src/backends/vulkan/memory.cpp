#include "backends/vulkan/memory.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace gimbal::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kOnDevice = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kReachable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
// Types that need features which are not enabled, or that are not meant for buffers.
constexpr VkMemoryPropertyFlags kNever =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                               kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;

}  // namespace

Memory::Memory(Gpu& gpu, bool staging)
    : gpu_(gpu),
      types_(gpu.memory().memoryProperties),
      shared_(!staging && (gpu.facts().type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                           gpu.facts().type == VK_PHYSICAL_DEVICE_TYPE_CPU)) {}

Memory::~Memory() {
  (void)gpu_.wait_for_all();
  for (Piece& p : pieces_) gpu_.free_commands(p.commands);
  drop(ring_);
}

int Memory::type(uint32_t bits, VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags unwanted) const {
  for (uint32_t i = 0; i < types_.memoryTypeCount; i++) {
    const VkMemoryPropertyFlags has = types_.memoryTypes[i].propertyFlags;
    if ((bits >> i & 1) && (has & wanted) == wanted && !(has & (unwanted | kNever))) return int(i);
  }
  return -1;
}

// On a card of its own: not the window through which the host sees it, which may be small.
int Memory::type_of_buffers(uint32_t bits) const {
  int t = -1;
  if (shared_) {
    t = type(bits, kOnDevice | kReachable | kCached);
    if (t < 0) t = type(bits, kOnDevice | kReachable);
  } else {
    t = type(bits, kOnDevice, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
  }
  return t < 0 ? type(bits, kOnDevice) : t;
}

uint64_t Memory::total() const {
  const int t = type_of_buffers(UINT32_MAX);
  return t < 0 ? 0 : types_.memoryHeaps[types_.memoryTypes[t].heapIndex].size;
}

uint64_t Memory::free() const {
  const int t = type_of_buffers(UINT32_MAX);
  if (t < 0) return 0;
  const uint32_t heap = types_.memoryTypes[t].heapIndex;
  uint64_t most = types_.memoryHeaps[heap].size, used = allocated_;
  if (gpu_.facts().memory_budget) {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    (void)gpu_.memory(&budget);
    most = budget.heapBudget[heap], used = budget.heapUsage[heap];
  }
  return most - std::min(most, used);
}

// After a failure, drop() releases the remains.
Failure Memory::make(uint64_t bytes, bool for_host, GpuBuffer* b) {
  const uint64_t size = std::max<uint64_t>(4, (bytes + 3) & ~uint64_t(3));
  if (size > gpu_.facts().largest_allocation)
    return {Failure::OutOfMemory, format("{}: {} bytes requested; its driver allocates at most {} at once",
                                         gpu_.facts().name, bytes, gpu_.facts().largest_allocation)};
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = size;
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (!for_host) info.usage |= VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  if (Failure f =
          gpu_.check(gpu_.vk().vkCreateBuffer(gpu_.device(), &info, nullptr, &b->handle), "vkCreateBuffer"))
    return f;
  VkMemoryRequirements needs;
  gpu_.vk().vkGetBufferMemoryRequirements(gpu_.device(), b->handle, &needs);
  int t = -1;
  if (for_host) {
    t = type(needs.memoryTypeBits, kReachable | kCached);
    if (t < 0) t = type(needs.memoryTypeBits, kReachable);
  } else {
    t = type_of_buffers(needs.memoryTypeBits);
  }
  if (t < 0) return {Failure::Unsupported, gpu_.facts().name + ": it has no memory for buffers"};
  const VkMemoryPropertyFlags has = types_.memoryTypes[t].propertyFlags;
  const uint64_t heap = types_.memoryHeaps[types_.memoryTypes[t].heapIndex].size;
  if (needs.size > heap)
    return {Failure::OutOfMemory,
            format("{}: {} bytes requested; its memory has {}", gpu_.facts().name, bytes, heap)};
  VkMemoryAllocateInfo memory = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  memory.allocationSize = needs.size, memory.memoryTypeIndex = uint32_t(t);
  if (Failure f = gpu_.check(gpu_.vk().vkAllocateMemory(gpu_.device(), &memory, nullptr, &b->memory),
                             "vkAllocateMemory")) {
    f.text += format(" ({} bytes requested, {} are free)", bytes, free());
    return f;
  }
  b->bytes = bytes, b->allocated = needs.size;
  allocated_ += b->allocated;
  if (Failure f = gpu_.check(gpu_.vk().vkBindBufferMemory(gpu_.device(), b->handle, b->memory, 0),
                             "vkBindBufferMemory"))
    return f;
  if ((has & kReachable) == kReachable && (for_host || shared_)) {
    void* at = nullptr;
    if (Failure f = gpu_.check(gpu_.vk().vkMapMemory(gpu_.device(), b->memory, 0, VK_WHOLE_SIZE, 0, &at),
                               "vkMapMemory"))
      return f;
    b->mapped = static_cast<uint8_t*>(at);
    b->cached = has & kCached;
  }
  return {};
}

Failure Memory::allocate(uint64_t bytes, GpuBuffer** out) {
  if (gpu_.lost()) return gpu_.lost();
  auto b = std::make_unique<GpuBuffer>();
  Failure f = make(bytes, false, b.get());
  if (!f) f = clear(*b);
  if (f) drop(*b);
  else *out = b.release();
  return f;
}

// By the device, even where the host could do it: so the trial of a device (discovery/examine.cpp) uses its
// queue.
Failure Memory::clear(GpuBuffer& b) {
  Piece* p = nullptr;
  if (Failure f = next_piece(&p)) return f;
  gpu_.vk().vkCmdFillBuffer(p->commands, b.handle, 0, VK_WHOLE_SIZE, 0);
  if (b.mapped) gpu_.barrier(p->commands, kTransfer, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  return finish(*p);
}

void Memory::release(GpuBuffer* b) {
  if (!b) return;
  drop(*b);
  delete b;
}

void Memory::drop(GpuBuffer& b) {
  (void)gpu_.wait_for_all();  // a device that is lost has nothing to wait for
  allocated_ -= b.allocated;
  gpu_.vk().vkDestroyBuffer(gpu_.device(), b.handle, nullptr);
  gpu_.vk().vkFreeMemory(gpu_.device(), b.memory, nullptr);  // unmaps
  b = {};
}

Failure Memory::next_piece(Piece** out) {
  Piece& p = pieces_[next_];
  if (!p.commands) {
    if (Failure f = gpu_.make_commands(&p.commands)) return f;
    p.offset = uint64_t(next_) * kPieceBytes;
  }
  next_ = (next_ + 1) % kPieces;
  if (Failure f = gpu_.wait(p.submission)) return f;
  if (Failure f = gpu_.begin(p.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)) return f;
  gpu_.barrier(p.commands, kCompute | kTransfer, kTransfer,
               VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  *out = &p;
  return {};
}

Failure Memory::next_piece_of_ring(Piece** out) {
  if (!ring_.mapped)
    if (Failure f = make(kPieces * kPieceBytes, true, &ring_)) return drop(ring_), f;
  return next_piece(out);
}

Failure Memory::finish(Piece& p) {
  if (Failure f = gpu_.end(p.commands)) return f;
  if (Failure f = gpu_.submit(p.commands)) return f;
  p.submission = gpu_.submitted();
  return {};
}

// If not mapped: earlier submissions still read the old contents, and the data are in the ring when this
// returns.
Failure Memory::write(GpuBuffer& b, uint64_t offset, const void* data, uint64_t bytes) {
  if (b.mapped) {
    if (Failure f = gpu_.wait_for_all()) return f;
    memcpy(b.mapped + offset, data, bytes);
    return {};
  }
  for (uint64_t done = 0; done < bytes; done += kPieceBytes) {
    Piece* p = nullptr;
    if (Failure f = next_piece_of_ring(&p)) return f;
    const VkBufferCopy copy = {p->offset, offset + done, std::min(kPieceBytes, bytes - done)};
    memcpy(ring_.mapped + p->offset, static_cast<const uint8_t*>(data) + done, copy.size);
    gpu_.vk().vkCmdCopyBuffer(p->commands, ring_.handle, b.handle, 1, &copy);
    if (Failure f = finish(*p)) return f;
  }
  return {};
}

Failure Memory::read(GpuBuffer& b, uint64_t offset, void* data, uint64_t bytes) {
  if (b.cached) {
    if (Failure f = gpu_.wait_for_all()) return f;
    memcpy(data, b.mapped + offset, bytes);
    return {};
  }
  for (uint64_t done = 0; done < bytes; done += kPieceBytes) {
    Piece* p = nullptr;
    if (Failure f = next_piece_of_ring(&p)) return f;
    const VkBufferCopy copy = {offset + done, p->offset, std::min(kPieceBytes, bytes - done)};
    gpu_.vk().vkCmdCopyBuffer(p->commands, b.handle, ring_.handle, 1, &copy);
    gpu_.barrier(p->commands, kTransfer, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (Failure f = finish(*p)) return f;
    if (Failure f = gpu_.wait(p->submission)) return f;
    memcpy(static_cast<uint8_t*>(data) + done, ring_.mapped + p->offset, copy.size);
  }
  return {};
}

}  // namespace gimbal::vulkan
