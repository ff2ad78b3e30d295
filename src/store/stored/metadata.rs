//! The metadata of a feed, as its record and its walk keep them.

use super::table::stored_structs;
use everfeed_adapters::{Cloud, History, Image, Metadata, Paging, Rhythm};

stored_structs! {
    Metadata {
        id, title, description, links, authors, contributors, categories, language, rights, generator, image, icon,
        updated, published, rhythm, history, paging, cloud, foreign,
    }
    Image { url, title, link, width, height, description }
    Rhythm { ttl_mins, skip_hours, skip_days, update_secs }
    History { stateful, prev, complete, archive }
    Paging { total_items, first_index, page_items }
    Cloud { domain, port, path, register_procedure, protocol }
}
