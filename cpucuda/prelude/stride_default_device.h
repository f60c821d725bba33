// With -default-device: functions without a mark run on the device, too. Variables get their mark
// from the front end.
#pragma clang force_cuda_host_device begin
