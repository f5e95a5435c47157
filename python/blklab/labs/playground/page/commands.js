// A device without a head or dies: the commands that it has, oldest first, each as long as it has taken.

import { duration } from "./format.js";
import { write } from "./canvas.js";

export class Commands {
  draw(context, width, height, view, theme) {
    write(context, theme, `${view.in_device_count} in the device`, 12, 14, { colour: theme.text });
    const oldest = Math.max(1, ...view.in_device.map((request) => view.now_ns - request.dispatched_ns));
    const rowHeight = Math.max(3, Math.min(16, (height - 44) / Math.max(1, view.in_device.length)));
    for (const [index, request] of view.in_device.entries()) {
      const y = 28 + index * rowHeight;
      if (y + rowHeight > height - 12) break;
      context.fillStyle = theme.task(request.job);
      const part = (view.now_ns - request.dispatched_ns) / oldest;
      context.fillRect(12, y, Math.max(2, (width - 24) * part), Math.max(2, rowHeight - 2));
    }
    if (view.in_device.length) write(context, theme, `the oldest: ${duration(oldest)}`, width - 12, 14, { align: "right" });
  }
}
