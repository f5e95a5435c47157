// Browsers start no worker from a page that was opened as a file. The search needs one, so there its script runs in a
// hidden frame of the page instead: the same messages, on the page's own thread.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => this.deliver(this, data);
      this.ready = new Promise((loaded, failed) => {
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = loaded;
        script.onerror = failed;
        inner.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.deliver(this.frame.contentWindow, data));
    }

    deliver(receiver, data) {
      const event = new MessageEvent("message", { data });
      receiver.dispatchEvent(event);
      if (receiver === this && this.onmessage) this.onmessage(event);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
