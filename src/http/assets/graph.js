"use strict";
// The page's query stands behind the `#` of its address, in the words of `/q`, so that it can be kept and sent on.
const field = (name) => document.getElementById(name);

function read() {
  const query = new URLSearchParams(location.hash.slice(1));
  field("start").value = query.get("start") || "1h-ago";
  field("end").value = query.get("end") || "";
  field("m").value = query.getAll("m").join("\n");
  return query.getAll("m").length > 0;
}

function write() {
  const query = new URLSearchParams(location.hash.slice(1));
  query.delete("m");
  query.set("start", field("start").value.trim() || "1h-ago");
  if (field("end").value.trim()) query.set("end", field("end").value.trim()); else query.delete("end");
  for (const line of field("m").value.split("\n")) if (line.trim()) query.append("m", line.trim());
  location.hash = query.toString();
}

async function draw() {
  if (!read()) return;
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.get("wxh")) query.set("wxh", `${Math.max(400, Math.min(1900, innerWidth - 80))}x480`);
  const counts = await fetch(`/q?${query}&json`);
  const told = await counts.json();
  field("said").textContent = told.err || `${told.plotted} of ${told.points} points in ${told.timing} ms`;
  field("graph").hidden = !counts.ok;
  if (counts.ok) field("graph").src = `/q?${query}&png`;
}

field("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const before = location.hash;
  write();
  if (location.hash === before) draw();
});
addEventListener("hashchange", draw);
draw();
