/* SPDX-License-Identifier: GPL-2.0-only */
/* An image of every kind of thing, for tests. */
#ifndef GPUCR_SAMPLE_H
#define GPUCR_SAMPLE_H

#include "image.h"

/* A fresh directory; -1 on failure. */
int sample_dir(void);
/* A GPU process on two GPUs; to be freed by gpucr_img_kfd_clear(). */
int sample_kfd(struct gpucr_img_kfd *img);
void sample_device(struct gpucr_img_device *d, uint32_t gpu_id);
/* Contents of a file; free() it. */
uint8_t *sample_read(int dir, const char *name, size_t *len);
int sample_write(int dir, const char *name, const void *data, size_t len);
/* Nothing but whole files is there. */
int sample_no_tmp(int dir);
/* Swallow messages; how many errors there were since the last call. */
void sample_quiet(void);
int sample_errors(void);
/* The text of the last error. */
const char *sample_last_error(void);

#endif
