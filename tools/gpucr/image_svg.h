/* SPDX-License-Identifier: GPL-2.0-only */
/* The drawings of the image report: inline SVG, no scripts, bounded size. */
#ifndef IMAGE_SVG_H
#define IMAGE_SVG_H

#include <stdio.h>

#include "imgset.h"

/* BOs by GPU address and heap, mappings below; a row for each cluster. */
void image_svg_map(FILE *to, const struct gpucr_img_kfd *k);
/* Bytes of each GPU's page file: stored, zeros. */
void image_svg_content(FILE *to, const struct gpucr_img_kfd *k);
/* How long what CRIU timed took. */
void image_svg_phases(FILE *to, const struct gpucr_criuimg *c);
/* Text for HTML and its attributes. */
void image_html_text(FILE *to, const char *text);
/* "2.0 GiB" */
void image_html_size(FILE *to, uint64_t bytes);

#endif
