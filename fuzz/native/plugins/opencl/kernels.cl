// One element of each op, as in fuzz/native/core/gpu/element.h, for the operand type T.
//
// The plug-in compiles this once for each type, after definitions of T, of U, an unsigned type
// of the same or a greater width (T itself for floats), of FN(name), a name for this type, and of
// the numbers of ops. What is here once for all types stands in common.cl.

T FN(add)(T a, T b) { return (T)((U)a + (U)b); }
T FN(sub)(T a, T b) { return (T)((U)a - (U)b); }
T FN(mul)(T a, T b) { return (T)((U)a * (U)b); }
T FN(larger)(T a, T b) { return a < b ? b : a; }
T FN(smaller)(T a, T b) { return b < a ? b : a; }

T FN(combined)(uint op, T before, T value) {
  switch (op) {
    case kScatterAdd: return FN(add)(before, value);
    case kScatterSub: return FN(sub)(before, value);
    case kScatterMul: return FN(mul)(before, value);
    case kScatterMin: return FN(smaller)(before, value);
    case kScatterMax: return FN(larger)(before, value);
    default: return value;
  }
}

T FN(product)(const Numbers n, global const T* a, global const T* b, uint i) {
  a += i / n.columns * n.inner;
  b += i % n.columns;
  T sum = 0;
  for (uint k = 0; k < n.inner; ++k) sum = FN(add)(sum, FN(mul)(a[k], b[k * n.columns]));
  return sum;
}

T FN(scattered)(const Numbers n, T value, global const T* updates, global const int* rows, uint i) {
  const uint row = i / n.row_elements, place = i % n.row_elements;
  for (uint k = 0; k < n.row_count; ++k) {
    if ((uint)rows[k] != row) continue;
    value = FN(combined)(n.op, value, updates[n.wide[0] ? k * n.row_elements + place : 0]);
  }
  return value;
}

kernel void FN(element)(const Numbers n, global uchar* out_0, global uchar* out_1,
                        global const uchar* contents_0, global const uchar* contents_1,
                        global const uchar* in_0, global const uchar* in_1,
                        global const uchar* in_2, global const uchar* rows_0) {
  const uint i = get_global_id(0);
  if (i >= n.threads) return;
  global T* const out = (global T*)(out_0 + n.at[0]);
  global uchar* const truth = out_0 + n.at[0];
  global T* const second_out = (global T*)(out_1 + n.at[1]);
  global const T* const contents = (global const T*)(contents_0 + n.at[2]);
  global const T* const second_contents = (global const T*)(contents_1 + n.at[3]);
  global const T* const x = (global const T*)(in_0 + n.at[4]);
  global const T* const y = (global const T*)(in_1 + n.at[5]);
  global const T* const z = (global const T*)(in_2 + n.at[6]);
  global const int* const rows = (global const int*)(rows_0 + n.at[7]);
  const uint at_x = n.wide[0] ? i : 0, at_y = n.wide[1] ? i : 0, at_z = n.wide[2] ? i : 0;
  switch (n.op) {
    case kIdentity:
      out[i] = x[!n.wide[0] ? 0
                 : n.row_count ? (uint)rows[i / n.row_elements] * n.row_elements + i % n.row_elements
                               : i];
      return;
    case kNeg: out[i] = FN(sub)(0, x[at_x]); return;
    case kRelu: out[i] = FN(larger)(x[at_x], 0); return;
    case kAddV2: out[i] = FN(add)(x[at_x], y[at_y]); return;
    case kSub: out[i] = FN(sub)(x[at_x], y[at_y]); return;
    case kMul: out[i] = FN(mul)(x[at_x], y[at_y]); return;
    case kMaximum: out[i] = FN(larger)(x[at_x], y[at_y]); return;
    case kMinimum: out[i] = FN(smaller)(x[at_x], y[at_y]); return;
    case kLess: truth[i] = x[at_x] < y[at_y]; return;
    case kEqual: truth[i] = x[at_x] == y[at_y]; return;
    case kReluGrad: out[i] = y[at_y] > 0 ? x[at_x] : 0; return;
    case kSelect: out[i] = (in_0 + n.at[4])[at_x] ? y[at_y] : z[at_z]; return;
    case kMatMul: out[i] = FN(product)(n, x, y, i); return;
    case kAssignAdd: out[i] = FN(add)(contents[i], x[at_x]); return;
    case kAssignSub: out[i] = FN(sub)(contents[i], x[at_x]); return;
    case kGradientDescent: out[i] = FN(sub)(contents[i], FN(mul)(x[0], y[at_y])); return;
    case kScatterUpdate:
    case kScatterAdd:
    case kScatterSub:
    case kScatterMul:
    case kScatterMin:
    case kScatterMax: out[i] = FN(scattered)(n, contents[i], x, rows, i); return;
#ifdef REAL
    case kMomentum:
    case kKerasMomentum: {
      T var = contents[i], accum = second_contents[i];
      const T lr = x[0], grad = y[at_y], factor = z[0];
      if (n.op == kKerasMomentum) {
        accum = accum * factor - lr * grad;
        var += n.nesterov ? accum * factor - lr * grad : accum;
      } else {
        accum = accum * factor + grad;
        var -= n.nesterov ? lr * grad + lr * factor * accum : lr * accum;
      }
      out[i] = var;
      second_out[i] = accum;
      return;
    }
#endif
    default: return;  // nothing to compute
  }
}
