// What precedes kernels.cl: no multiplication and addition in one step, which would round once
// where the host rounds twice.
#ifdef CONTRACTION
#pragma OPENCL FP_CONTRACT ON
#else
#pragma OPENCL FP_CONTRACT OFF
#endif

// The numbers of a launch; struct Numbers in device.cpp is the same.
typedef struct {
  ulong at[8];  // offsets in bytes, in the order of the kernel's arguments
  uint op, threads, nesterov, row_count, row_elements, inner, columns;
  uint wide[3];  // 0: the operand's only element is broadcast
} Numbers;
