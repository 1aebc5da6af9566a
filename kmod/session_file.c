// SPDX-License-Identifier: GPL-2.0
/* The descriptor of a session: its end is the session's, or an abandonment. */
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/module.h>

#include "fault.h"
#include "session.h"

static int gpucr_session_file_release(struct inode *inode, struct file *file)
{
	struct gpucr_session *s = file->private_data;

	gpucr_session_orphan(s, file, NULL);
	gpucr_session_put(s);
	return 0;
}

static const struct file_operations gpucr_session_fops = {
	.owner = THIS_MODULE,
	.release = gpucr_session_file_release,
	.llseek = noop_llseek,
};

/**
 * gpucr_session_file() - make the file of a session
 * @s: what gpucr_session_open() returned; the reference goes to the file, or
 *	is dropped on failure, as if the file had been closed
 *
 * Return: the file, or an error pointer.
 */
struct file *gpucr_session_file(struct gpucr_session *s)
{
	int err = gpucr_fault(GPUCR_FAULT_SESSION_FILE);
	struct file *file;

	file = err ? ERR_PTR(err) :
		     anon_inode_getfile("[gpucr-session]", &gpucr_session_fops,
					s, O_RDONLY | O_CLOEXEC);
	if (IS_ERR(file)) {
		gpucr_session_orphan(s, NULL, NULL);
		gpucr_session_put(s);
		return file;
	}
	spin_lock(&s->lock);
	s->owner_file = file;
	spin_unlock(&s->lock);
	return file;
}
