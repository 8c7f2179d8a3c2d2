/** A file, dropped anywhere on the page or chosen: translated in its own format. */
import { ask } from "./api.js";
import { drawer, element, note, said } from "./parts.js";
import { showProblem } from "./problems.js";

/** Where a file goes if nothing was chosen: away from the language it is in, as its signs tell. */
async function targetOf(app, file) {
  const isChinese = /\p{Script=Han}/u.test(await file.slice(0, 4000).text());
  const ways = app.directions;
  return (ways.find((way) => way.from.startsWith("zh") === isChinese) ?? ways[0])?.to ?? "en";
}

export function fileCard(app, page) {
  const result = element("div", { role: "status" });
  const picker = element("input", {
    type: "file", "aria-label": said("file_choose"),
    onchange: () => picker.files[0] && take(picker.files[0]),
  });
  const root = drawer(said("file"), said("file_help"), picker, result);

  async function take(file) {
    const { name } = file;
    root.open = true;
    root.scrollIntoView({ block: "nearest" });
    result.replaceChildren(element("p", said("file_working", { name })));
    const form = new FormData();
    form.set("file", file);
    form.set("source", app.state.from || "auto");
    form.set("target", app.state.to || await targetOf(app, file));
    try {
      const found = await ask("/translate_file", form);
      const { pathname } = new URL(found.translatedFileUrl, location.href); // always of this server
      result.replaceChildren(element("p",
        element("a", { href: pathname, download: name }, said("file_done", { name }))));
      if (found.untranslated) result.append(note(said("file_left", { n: found.untranslated })));
    } catch (problem) {
      showProblem(app, result, problem, () => take(file));
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
