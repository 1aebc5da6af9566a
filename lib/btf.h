/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The size of one struct in the kernel's own type information (BTF). A small
 * reader of our own: a library that fails to load would stop every CRIU on the
 * machine, and one number is all that is wanted.
 */
#ifndef GPUCR_BTF_H
#define GPUCR_BTF_H

#include <stddef.h>
#include <stdint.h>

/*
 * base_str_len: a module's BTF continues the names of vmlinux, which are so
 * many bytes; 0 where it stands alone. -ENOENT: no struct of that name;
 * -EBADMSG: it is damaged; -EPROTO: it holds what this reader does not know.
 */
int gpucr_btf_struct_size(const void *data, size_t len, uint32_t base_str_len,
			  const char *name, uint32_t *ret);

/*
 * The same of a loaded module, or of vmlinux where it is built in. -ENOENT also
 * where the kernel has no BTF of it.
 */
int gpucr_btf_module_struct_size(const char *module, const char *name,
				 uint32_t *ret);

#endif
