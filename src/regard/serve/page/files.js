/** A file, dropped anywhere on the page or chosen: translated in its own format. */
import { ask, Problem } from "./api.js";
import { problemCard } from "./problems.js";
import { element } from "./view/elements.js";

export function fileCard(app, page) {
  const result = element("div", { role: "status" });
  const picker = element("input", {
    type: "file", "aria-label": app.said("file_choose"),
    onchange: () => picker.files[0] && take(picker.files[0]),
  });
  const root = element("details", { class: "card" },
    element("summary", {}, app.said("file")),
    element("p", { class: "note" }, app.said("file_help")), picker, result);

  async function take(file) {
    root.open = true;
    root.scrollIntoView({ block: "nearest" });
    result.replaceChildren(element("p", {}, app.said("file_working", { name: file.name })));
    const form = new FormData();
    form.set("file", file);
    form.set("source", app.state.from || "auto");
    form.set("target", app.state.to || app.directions[0]?.to || "en");
    try {
      const found = await ask("/translate_file", form);
      const { pathname } = new URL(found.translatedFileUrl, location.href); // always of this server
      result.replaceChildren(
        element("p", {}, element("a", { href: pathname, download: file.name },
          app.said("file_done", { name: file.name }))),
      );
      if (found.untranslated) {
        result.append(element("p", { class: "note" },
          app.said("file_left", { n: found.untranslated })));
      }
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      result.replaceChildren(problemCard(app, problem, () => take(file)));
    }
  }

  const over = (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    page.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  };
  const kinds = ["dragover", "dragleave", "drop"];
  for (const kind of kinds) document.addEventListener(kind, over);
  root.take = take;
  root.leave = () => kinds.forEach((kind) => document.removeEventListener(kind, over));
  return root;
}
