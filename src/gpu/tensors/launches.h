// The tensor library's ops on GPUs: their rows in the table of a backend, and their launches.
#pragma once
#include <string>
#include <vector>

#include "gpu/launches.h"
#include "gpu/rows.h"

namespace gimbal::gpu {

void add_tensor_rows(Rows&, const std::string& backend);

// The limits of every kernel of tensors.
std::vector<gimbal_limit> tensor_sizes();
// The row of a kernel text (gpu/text/kernel_text.h), whose name and limits must stay valid.
Row custom_row(Rows&, const gimbal_kernel_info&);

void plan_map(OpPlan&);
void plan_map_int(OpPlan&);
void plan_cast(OpPlan&);
void plan_assign(OpPlan&);
void plan_select(OpPlan&);
void plan_gather(OpPlan&);
void plan_scatter(OpPlan&);
void plan_check_ids(OpPlan&);
void plan_reduce(OpPlan&);
void plan_reduce_int(OpPlan&);
void plan_softmax(OpPlan&);
void plan_normalize(OpPlan&);
void plan_cumsum(OpPlan&);
void plan_cumsum_int(OpPlan&);
void plan_tensor_order(OpPlan&);
void plan_product(OpPlan&);
void plan_conv(OpPlan&);
void plan_resample(OpPlan&);
void plan_random(OpPlan&);
void plan_decode(OpPlan&);
void plan_encode(OpPlan&);
void plan_indexed(OpPlan&);
void plan_solve(OpPlan&);
void plan_cholesky(OpPlan&);
void plan_qr(OpPlan&);

}  // namespace gimbal::gpu
